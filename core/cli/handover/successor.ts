/** The process that is to go on in place of this one, as this one sees it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Server, Socket } from "node:net";
import { serialize } from "node:v8";
import type { Handed, SavedState } from "../../host.ts";
import type { Successor } from "../../types.ts";
import { type Checked, type FromFormer, type FromSuccessor, SUCCESSOR } from "./messages.ts";

/** Seconds in which it must have loaded everything, and those in which it must serve. */
const CHECK_TIMEOUT = 120;
const START_TIMEOUT = 120;

/** Milliseconds after which one that was asked to end is killed. */
const END_MS = 5000;

/** Meant for the process that was started with them. */
const ownVariables = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID", "WATCHDOG_PID"];

export class SuccessorProcess {
  readonly #child: ChildProcess;
  readonly #heard: FromSuccessor[] = [];
  /** Why nothing more is heard of it. */
  #gone: string | undefined;
  #wake = () => {};

  constructor({ command = ownCommand(), folder = process.cwd() }: Successor, env: NodeJS.ProcessEnv) {
    const [executable = process.execPath, ...args] = command;
    const own = Object.fromEntries(Object.entries(env).filter(([name]) => !ownVariables.includes(name)));
    this.#child = spawn(executable, args, {
      cwd: folder,
      env: { ...own, [SUCCESSOR]: "1" },
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      serialization: "advanced",
    });
    const left = (reason: string) => {
      this.#gone ??= reason;
      this.#wake();
    };
    this.#child.on("error", (error) => left(`it cannot be started: ${error.message}`));
    this.#child.on("exit", (code, signal) => left(`it has ended with ${signal ?? `exit code ${code}`}`));
    this.#child.on("message", (message) => {
      this.#heard.push(message as FromSuccessor);
      this.#wake();
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** @throws {Error} when it has ended */
  assertAlive(): void {
    if (this.#gone !== undefined) throw new Error(this.#gone);
  }

  /** It has loaded everything once. @throws {Error} why it cannot */
  checked(): Promise<Checked> {
    return this.#next("checked", CHECK_TIMEOUT);
  }

  /** Has it open all that was left, and resolves when it serves. @throws {Error} why it does not */
  async begin({ ports, states }: Handed): Promise<void> {
    for (const { name, asked, server } of ports) await this.#send({ type: "port", name, asked }, server);
    await this.#send({ type: "begin", states });
    await this.#next("running", START_TIMEOUT);
  }

  /** Gives it the connections that came meanwhile; then the ports are its own. */
  async give({ ports }: Handed): Promise<void> {
    const sent: Promise<void>[] = [];
    for (const { name, server, waiting } of ports) {
      server.close();
      for (const socket of waiting.splice(0)) sent.push(this.#send({ type: "connection", service: name }, socket));
    }
    await Promise.all(sent);
    await this.#send({ type: "over" });
    await this.#next("taken", START_TIMEOUT);
    this.#child.disconnect();
    this.#child.unref();
  }

  /** It is not wanted any more. Resolves when it has ended. */
  async end(): Promise<void> {
    if (this.#gone !== undefined) return;
    const ended = once(this.#child, "exit").catch(() => undefined);
    this.#child.kill("SIGTERM");
    const kill = setTimeout(() => this.#child.kill("SIGKILL"), END_MS);
    await ended;
    clearTimeout(kill);
  }

  async #next<T extends FromSuccessor["type"]>(type: T, seconds: number): Promise<FromSuccessor & { type: T }> {
    const timer = setTimeout(() => {
      this.#gone ??= `it has not answered for ${seconds} s`;
      this.#wake();
    }, seconds * 1000);
    try {
      for (;;) {
        const message = this.#heard.shift();
        if (message?.type === "failed") throw new Error(message.reason);
        if (message?.type === type) return message as FromSuccessor & { type: T };
        if (message !== undefined) continue;
        this.assertAlive();
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** A connection whose client has left goes without its handle. */
  async #send(message: FromFormer, handle?: Server | Socket): Promise<void> {
    this.assertAlive();
    await new Promise<void>((resolve, reject) => {
      this.#child.send(message, handle, (error) => (error === null ? resolve() : reject(error)));
    });
  }
}

/** As this process was started. */
function ownCommand(): string[] {
  const options = process.execArgv.filter((option) => !option.startsWith("--inspect"));
  return [process.execPath, ...options, ...process.argv.slice(1)];
}

/** States that another process can be sent; `left` hears of the others. */
export function sendable(states: readonly SavedState[], left: (key: string) => void): SavedState[] {
  return states.filter(({ key, value }) => {
    try {
      serialize(value);
      return true;
    } catch {
      left(key);
      return false;
    }
  });
}
