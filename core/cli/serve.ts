import { constants } from "node:os";

type StopSignal = "SIGINT" | "SIGTERM" | "SIGHUP";

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
}

export interface ServeOptions {
  /** Signals that ask for the end. Default SIGINT and SIGTERM. */
  readonly signals?: readonly StopSignal[];
  /** Told of the first signal. */
  readonly interrupted?: () => void;
  /** Told of a second signal, at which the process ends at once; gives its exit code. */
  readonly forced?: (signal: StopSignal) => number;
}

/** npm and shells pass a terminal's Ctrl+C on to programs that got it already: an echo this soon is no second one. */
const echo = 300;

/**
 * Runs a service until a signal, itself, or an exception that nobody caught ends it, and gives the exit code: 0, or 1
 * after such an exception, since nobody knows what it left undone. A rejected promise that nobody handles is logged.
 *
 * @throws what the start fails with
 */
export async function serve(
  service: Service,
  {
    signals = ["SIGINT", "SIGTERM"],
    interrupted = () => undefined,
    forced = (signal) => 128 + constants.signals[signal],
  }: ServeOptions = {},
): Promise<number> {
  const { promise: wanted, resolve: end } = Promise.withResolvers<void>();
  let code = 0;
  let first: number | undefined;
  for (const signal of signals) {
    process.on(signal, () => {
      if (first === undefined) {
        first = performance.now();
        interrupted();
        end();
      } else if (performance.now() - first > echo) process.exit(forced(signal));
    });
  }
  process.on("unhandledRejection", (reason) => service.report(reason));
  process.on("uncaughtException", (error) => {
    service.report(error);
    code = 1;
    end();
  });
  // What listens nowhere runs on as well.
  const running = setInterval(() => undefined, 2 ** 30);
  try {
    await Promise.race([service.start(), wanted]);
    await Promise.race([service.ended, wanted]);
  } finally {
    clearInterval(running);
    await service.stop();
  }
  return code;
}
