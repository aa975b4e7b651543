import { closeSync, openSync } from "node:fs";
import { constants } from "node:os";
import type { ProcessAct } from "../host/types.ts";
import { tuneHeap } from "./heap.ts";
import { guardProcess } from "./process_guard.ts";

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
type StopSignal = (typeof signals)[number];

/** Something that runs until it is stopped; a host is one. */
export interface Service {
  /** May be left unfinished by `stop`. */
  start(): Promise<void>;
  /** Called once; also after a start that failed. */
  stop(): Promise<void>;
  /** Resolves when it has stopped by itself. */
  readonly ended: Promise<void>;
  /** Logs an error that nobody caught. */
  report(error: unknown): void;
  /** The same for an exception; true when the service can go on all the same. */
  contain?(error: unknown): boolean;
  /** Some code wants to end or move the process: gives the error to throw to it, or undefined where it may. */
  refuse?(act: ProcessAct): Error | undefined;
}

export interface ServeOptions {
  /** Told of the first signal. */
  readonly interrupted?: (signal: StopSignal) => void;
  /** Told of a second signal, at which the process ends at once; gives its exit code. */
  readonly forced?: (signal: StopSignal) => number;
  /** Called at SIGHUP, which ends nothing then, unless the terminal that the process was started from has gone. */
  readonly reload?: () => void;
  /** Signals that end it; others are taken for those of its parent. Default: all. */
  readonly ends?: readonly StopSignal[];
  /** Called at SIGUSR2, which would end the process otherwise. */
  readonly reopen?: () => void;
}

let isService = false;

/** Has this process been a service? */
export function hasServed(): boolean {
  return isService;
}

/** npm and shells pass a terminal's Ctrl+C on to programs that got it already: an echo this soon is no second one. */
const MAX_ECHO_MS = 300;

/**
 * A reader of the standard streams that leaves, or a disk that is full, is no reason for a service to end: what is
 * written there from now on may be lost.
 */
export function outliveReaders(...streams: NodeJS.WritableStream[]): void {
  for (const stream of streams) stream.on("error", () => undefined);
}

/**
 * Runs a service until SIGINT, SIGTERM or SIGHUP, itself, or an exception that nobody caught and that it cannot contain
 * ends it, and gives the exit code: 0, or 1 after such an exception, since nobody knows what it left undone. A rejected promise that nobody handles is
 * logged.
 *
 * @throws what the start fails with
 */
export async function serve(
  service: Service,
  {
    interrupted = () => undefined,
    forced = (signal) => 128 + constants.signals[signal],
    reload,
    reopen,
    ends = signals,
  }: ServeOptions = {},
): Promise<number> {
  const { promise: wanted, resolve: end } = Promise.withResolvers<void>();
  let code = 0;
  let first: number | undefined;
  isService = true;
  outliveReaders(process.stdout, process.stderr);
  const guard = guardProcess({ refuse: (act) => service.refuse?.(act) });
  const hadTerminal = hasTerminal();
  for (const signal of signals) {
    process.on(signal, () => {
      if (!ends.includes(signal)) return;
      // Whoever closes a terminal means to end what runs there.
      if (signal === "SIGHUP" && reload !== undefined && (!hadTerminal || hasTerminal())) reload();
      else if (first === undefined) {
        first = performance.now();
        interrupted(signal);
        end();
      } else if (performance.now() - first > MAX_ECHO_MS) guard.exit(forced(signal));
    });
  }
  if (reopen !== undefined) process.on("SIGUSR2", () => ends === signals && reopen());
  process.on("unhandledRejection", (reason) => service.report(reason));
  process.on("uncaughtException", (error) => {
    if (service.contain?.(error) === true) return;
    if (service.contain === undefined) service.report(error);
    code = 1;
    end();
  });
  const untune = tuneHeap();
  // What listens nowhere runs on as well.
  const running = setInterval(() => undefined, 2 ** 30);
  try {
    await Promise.race([service.start(), wanted]);
    await Promise.race([service.ended, wanted]);
  } finally {
    clearInterval(running);
    untune();
    await service.stop();
    guard.end();
  }
  return code;
}

/** The process has a terminal that controls it, and that is still there. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}
