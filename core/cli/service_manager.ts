/** Notifies systemd, or a compatible program, of the state of the server: sd_notify(3). */
import { execFile } from "node:child_process";

/**
 * Node cannot send to NOTIFY_SOCKET itself, which takes datagrams. This program comes with systemd
 * and can. Its messages come from its own process, so the unit needs NotifyAccess=all.
 */
const PROGRAM = "systemd-notify";

/** Milliseconds after which an unfinished notification fails. */
const SEND_TIMEOUT_MS = 10_000;

export interface ServiceManagerDeps {
  readonly env: NodeJS.ProcessEnv;
  /** Called once with the reason why notifications fail. */
  failed(reason: string): void;
  /** Runs the program; rejects when it fails. */
  readonly send?: (assignments: readonly string[]) => Promise<void>;
  /** Returns the system's monotonic clock in microseconds. */
  readonly now?: () => bigint;
}

export class ServiceManager {
  readonly #send: (assignments: readonly string[]) => Promise<void>;
  readonly #deps: ServiceManagerDeps;
  readonly #now: () => bigint;
  /** Messages are sent one after another, so that the last state arrives last. */
  #sending: Promise<void> = Promise.resolve();
  #hasFailed = false;
  #beat: NodeJS.Timeout | undefined;

  constructor(deps: ServiceManagerDeps) {
    this.#deps = deps;
    this.#send = deps.send ?? ((assignments) => notify(assignments, deps.env));
    // On Linux this is CLOCK_MONOTONIC, which the manager compares it with.
    this.#now = deps.now ?? (() => process.hrtime.bigint() / 1000n);
  }

  /** Whether a service manager expects notifications. */
  get isThere(): boolean {
    return (this.#deps.env.NOTIFY_SOCKET ?? "") !== "";
  }

  /**
   * Reports that the server serves, and that this is its process: a previous process may have been
   * the main one.
   */
  ready(status: string): Promise<void> {
    this.#watch();
    return this.#notify("READY=1", `MAINPID=${process.pid}`, statusOf(status));
  }

  /** Reports a reload, which lasts until `ready` is called again. */
  reloading(status: string): Promise<void> {
    return this.#notify("RELOADING=1", `MONOTONIC_USEC=${this.#now()}`, statusOf(status));
  }

  stopping(status: string): Promise<void> {
    return this.#notify("STOPPING=1", statusOf(status));
  }

  /** Stops the watchdog messages; resolves when pending messages are sent. */
  close(): Promise<void> {
    clearInterval(this.#beat);
    return this.#sending;
  }

  /**
   * Starts to send messages for WatchdogSec, twice as often as required; a blocked event loop sends
   * none.
   */
  #watch(): void {
    const { WATCHDOG_USEC, WATCHDOG_PID } = this.#deps.env;
    const ms = Number(WATCHDOG_USEC) / 1000;
    const isMeant = WATCHDOG_PID === undefined || [process.pid, process.ppid].includes(Number(WATCHDOG_PID));
    if (this.#beat !== undefined || !this.isThere || !isMeant || !(ms > 0)) return;
    this.#beat = setInterval(() => void this.#notify("WATCHDOG=1"), Math.max(1, ms / 2)).unref();
  }

  #notify(...assignments: string[]): Promise<void> {
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
