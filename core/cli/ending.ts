import { constants } from "node:os";
import type { Host } from "../host.ts";

type StopSignal = "SIGINT" | "SIGTERM";

const stopSignals: readonly StopSignal[] = ["SIGINT", "SIGTERM"];

/** npm and shells pass a terminal's Ctrl+C on to programs that got it already: an echo this soon is no second one. */
const echo = 300;

export interface Ending {
  /** Resolves when the host should stop. */
  readonly wanted: Promise<void>;
  /** The exit code as far as it is known. */
  code(): number;
}

/**
 * What the process does about signals and about errors that nobody caught, for as long as it lives. The first SIGINT or
 * SIGTERM asks for the end, the second one is the end. A rejected promise that nobody handles is logged; an exception
 * that nobody catches is logged and asks for the end, with exit code 1, since nobody knows what it left undone.
 */
export function endingOf(host: Host): Ending {
  const { promise: wanted, resolve: stop } = Promise.withResolvers<void>();
  let code = 0;
  let first: number | undefined;
  for (const signal of stopSignals) {
    process.on(signal, () => {
      if (first === undefined) {
        first = performance.now();
        stop();
      } else if (performance.now() - first > echo) {
        process.exit(128 + constants.signals[signal]);
      }
    });
  }
  process.on("unhandledRejection", (reason) => host.report(reason));
  process.on("uncaughtException", (error) => {
    host.report(error);
    code = 1;
    stop();
  });
  return { wanted, code: () => code };
}
