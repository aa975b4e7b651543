import { closeSync, openSync } from "node:fs";
import { constants } from "node:os";
import type { ProcessAct } from "../host/types.ts";
import { reasonOf } from "../util/errors.ts";
import { actingNow, leaveFailed } from "../util/usage.ts";
import { tuneHeap } from "./heap.ts";
import { guardProcess, type ProcessGuard } from "./process_guard.ts";

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
type StopSignal = (typeof signals)[number];

/** Something that runs until it is stopped, such as a host. */
export interface Service {
  /** `stop` may be called before this has finished. */
  start(): Promise<void>;
  /** Called once; also after a start that failed. */
  stop(): Promise<void>;
  /** Resolves when it has stopped by itself. */
  readonly ended: Promise<void>;
  /** Logs an uncaught error. */
  report(error: unknown): void;
  /** Handles an uncaught exception; returns true if the service can keep running. */
  contain?(error: unknown): boolean;
  /**
   * Checks a call that would end the process or change its folder: returns the error to throw, or
   * undefined if the call is allowed.
   */
  refuse?(act: ProcessAct): Error | undefined;
}

export interface ServeOptions {
  /** Called with the first signal. */
  readonly interrupted?: (signal: StopSignal) => void;
  /** Called with a second signal, at which the process ends at once; returns its exit code. */
  readonly forced?: (signal: StopSignal) => number;
  /**
   * Called at SIGHUP, which then does not end the process, unless the terminal that started the
   * process has been closed.
   */
  readonly reload?: () => void;
  /**
   * Signals that end the process; other signals are ignored, because the parent handles them.
   * Default: all.
   */
  readonly ends?: readonly StopSignal[];
  /** Called at SIGUSR2, which would otherwise end the process. */
  readonly reopen?: () => void;
}

let isService = false;

/** Returns true if this process has been a service. */
export function hasServed(): boolean {
  return isService;
}

/**
 * npm and shells pass a terminal's Ctrl+C on to programs that received it already: a second signal
 * within this time counts as the same one.
 */
const MAX_ECHO_MS = 300;

/**
 * Lets a service survive readers of the standard streams that disconnect, and full disks: output
 * may then be lost.
 */
export function outliveReaders(...streams: NodeJS.WritableStream[]): void {
  for (const stream of streams) stream.on("error", () => undefined);
}

/**
 * Runs a service until SIGINT, SIGTERM or SIGHUP, until it ends by itself, or until an uncaught
 * exception that it cannot contain. Returns the exit code: 0, or 1 after such an exception, since
 * some work may be unfinished. An unhandled rejection is logged.
 * @throws the error of a failed start
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
  const hadTerminal = hasTerminal();
  const stopAt = (signal: StopSignal) => {
    if (!ends.includes(signal)) return;
    // Closing a terminal must end the programs in it.
    if (signal === "SIGHUP" && reload !== undefined && (!hadTerminal || hasTerminal())) reload();
    else if (first === undefined) {
      first = performance.now();
      interrupted(signal);
      end();
    } else if (performance.now() - first > MAX_ECHO_MS) guard.exit(forced(signal));
  };
  /** Refuses a signal that a module emits itself: it would end the process for all modules. */
  const guarded = <S extends string>(signal: S, act: (signal: S) => void) => {
    const refusal = actingNow() && guard.refusal(`process.emit("${signal}")`);
    if (refusal !== undefined) throw refusal;
    act(signal);
  };
  const reopenAt = () => {
    if (ends === signals) reopen?.();
  };
  const fail = (error: unknown) => {
    if (contains(service, error)) return;
    code = 1;
    end();
  };
  const guard: ProcessGuard = guardProcess({
    refuse: (act) => service.refuse?.(act),
    failed: fail,
    listeners: {
      ...Object.fromEntries(signals.map((signal) => [signal, () => guarded(signal, stopAt)])),
      // Without a listener, this signal would end the process: the launcher's may be removed.
      SIGUSR1: () => undefined,
      ...(reopen === undefined ? {} : { SIGUSR2: () => guarded("SIGUSR2", reopenAt) }),
      unhandledRejection: (reason: unknown) => attempt(() => service.report(reason)),
      uncaughtException(error: unknown) {
        fail(error);
        leaveFailed();
      },
    },
  });
  const untune = tuneHeap();
  // This keeps a process alive that listens on nothing.
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

/** Returns true if the service can keep running after the error. */
function contains(service: Service, error: unknown): boolean {
  return (
    attempt(() => {
      if (service.contain !== undefined) return service.contain(error);
      service.report(error);
      return false;
    }) === true
  );
}

/** Calls `report`, which can throw, too; that must not end the process. */
function attempt<T>(report: () => T): T | undefined {
  try {
    return report();
  } catch (error) {
    process.stderr.write(`modhost: cannot report an uncaught error: ${reasonOf(error)}\n`);
    return undefined;
  }
}

/** Returns true if the process has a controlling terminal that still exists. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}
