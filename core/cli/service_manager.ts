/** What systemd, or a program that stands in its place, is told of the server: sd_notify(3). */
import { execFile } from "node:child_process";

/**
 * Node cannot send to NOTIFY_SOCKET itself, which takes datagrams: this program, which comes with systemd, does. Its message
 * is that of a process of its own, so that a unit has NotifyAccess=all.
 */
const PROGRAM = "systemd-notify";

/** Milliseconds. */
const SEND_TIMEOUT_MS = 10_000;

export interface ServiceManagerDeps {
  readonly env: NodeJS.ProcessEnv;
  /** Hears once why nothing can be told. */
  failed(reason: string): void;
  /** Runs the program; rejects when it fails. */
  readonly send?: (assignments: readonly string[]) => Promise<void>;
  /** Microseconds of the monotonic clock of the system. */
  readonly now?: () => bigint;
}

export class ServiceManager {
  readonly #send: (assignments: readonly string[]) => Promise<void>;
  readonly #deps: ServiceManagerDeps;
  readonly #now: () => bigint;
  /** One message after the other: the last one said is the last one heard. */
  #sending: Promise<void> = Promise.resolve();
  #hasFailed = false;
  #beat: NodeJS.Timeout | undefined;

  constructor(deps: ServiceManagerDeps) {
    this.#deps = deps;
    this.#send = deps.send ?? ((assignments) => notify(assignments, deps.env));
    // On Linux this is CLOCK_MONOTONIC, which the manager compares it with.
    this.#now = deps.now ?? (() => process.hrtime.bigint() / 1000n);
  }

  /** Somebody wants to be told. */
  get isThere(): boolean {
    return (this.#deps.env.NOTIFY_SOCKET ?? "") !== "";
  }

  /** The server serves, and this is its process: another one may have been before. */
  ready(status: string): Promise<void> {
    this.#watch();
    return this.#tell("READY=1", `MAINPID=${process.pid}`, statusOf(status));
  }

  /** Until `ready` is told again. */
  reloading(status: string): Promise<void> {
    return this.#tell("RELOADING=1", `MONOTONIC_USEC=${this.#now()}`, statusOf(status));
  }

  stopping(status: string): Promise<void> {
    return this.#tell("STOPPING=1", statusOf(status));
  }

  /** Nothing more is told but what is under way. */
  close(): Promise<void> {
    clearInterval(this.#beat);
    return this.#sending;
  }

  /** WatchdogSec: twice as often as the manager wants it; an event loop that stands still tells nothing. */
  #watch(): void {
    const { WATCHDOG_USEC, WATCHDOG_PID } = this.#deps.env;
    const ms = Number(WATCHDOG_USEC) / 1000;
    const isMeant = WATCHDOG_PID === undefined || [process.pid, process.ppid].includes(Number(WATCHDOG_PID));
    if (this.#beat !== undefined || !this.isThere || !isMeant || !(ms > 0)) return;
    this.#beat = setInterval(() => void this.#tell("WATCHDOG=1"), Math.max(1, ms / 2)).unref();
  }

  #tell(...assignments: string[]): Promise<void> {
    if (!this.isThere) return Promise.resolve();
    this.#sending = this.#sending
      .then(() => this.#send(assignments))
      .catch((error: Error) => {
        if (this.#hasFailed) return;
        this.#hasFailed = true;
        this.#deps.failed(error.message);
      });
    return this.#sending;
  }
}

const statusOf = (text: string) => `STATUS=${text.replaceAll(/\s+/g, " ")}`;

async function notify(assignments: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  execFile(PROGRAM, [...assignments], { env, timeout: SEND_TIMEOUT_MS }, (error, _output, stderr) => {
    if (error === null) resolve();
    else reject(new Error(error.code === "ENOENT" ? `there is no ${PROGRAM}` : stderr.trim() || error.message));
  });
  return promise;
}
