/** The channel to the next server process, for the process that hands over. */
import { serialize } from "node:v8";
import type { Handed, SavedState } from "../../host.ts";
import { within } from "../../relay/channel.ts";
import { ConnectionHandoff } from "../../relay/connection_handoff.ts";
import { closeHandle } from "../../relay/ipc_channel.ts";
import { IpcChild, ownCommand } from "../../relay/ipc_child.ts";
import type { NextServerProcess } from "../../types.ts";
import { handleOf } from "../../util/patches/node/handles.ts";
import { type Checked, TAKEOVER_VARIABLE } from "./messages.ts";

/** Seconds in which the next process must have loaded everything. */
const CHECK_TIMEOUT = 120;
/** Seconds in which it must serve after the handover has begun. */
const START_TIMEOUT = 120;

/** Milliseconds after which a process that was requested to end is killed. */
const END_MS = 5000;

/** Variables that concern only the process that was started with them. */
const ownVariables = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID", "WATCHDOG_PID"];

export class NextProcess {
  readonly #child: IpcChild;

  constructor({ command, folder = process.cwd() }: NextServerProcess, env: NodeJS.ProcessEnv) {
    const own = Object.fromEntries(Object.entries(env).filter(([name]) => !ownVariables.includes(name)));
    const [executable = process.execPath, ...args] = command ?? ownCommand();
    this.#child = new IpcChild({
      command: [executable, ...args],
      cwd: folder,
      env: { ...own, [TAKEOVER_VARIABLE]: "1" },
      stdio: ["ignore", "inherit", "inherit"],
      handlers: { failed: (reason: string) => this.#child.channel.end(new Error(reason)) },
      onConnection: ({ handle }) => closeHandle(handle),
    });
  }

  get pid(): number | undefined {
    return this.#child.process.pid;
  }

  /** @throws {Error} when the process has failed or ended */
  assertAlive(): void {
    const { ended } = this.#child.channel;
    if (ended !== undefined) throw ended;
  }

  /** Resolves when the process has loaded everything once. @throws {Error} why it cannot */
  async checked(): Promise<Checked> {
    return (await this.#call(CHECK_TIMEOUT, "check")) as Checked;
  }

  /**
   * Hands over the ports and the states, and resolves when the process serves. @throws {Error} why
   * it does not
   */
  async begin({ ports, states }: Handed): Promise<void> {
    const handed = ports.flatMap(({ name, requested, server }, at) => {
      const handle = handleOf(server);
      if (handle === null) return [];
      const key = `port ${at}`;
      this.#child.channel.give(key, handle);
      return [{ key, name, requested }];
    });
    await this.#call(START_TIMEOUT, "begin", { ports: handed, states });
  }

  /**
   * Hands over the connections that came in the meantime. Afterwards the ports belong to the other
   * process alone.
   */
  async give({ ports }: Handed): Promise<void> {
    const handoff = new ConnectionHandoff(() => this.#child.channel);
    for (const { name, server, waiting } of ports) {
      server.close();
      for (const socket of waiting.splice(0)) {
        handoff.takeFrom(socket, { service: name, head: new Uint8Array(), to: 1 });
      }
    }
    await Promise.race([handoff.delivered(START_TIMEOUT * 1000), this.#child.ended]);
    await this.#call(START_TIMEOUT, "finish");
    this.#child.process.disconnect();
    this.#child.process.unref();
  }

  /** Ends the process, because it is not needed. Resolves when it has ended. */
  async end(): Promise<void> {
    this.#child.process.kill("SIGTERM");
    await this.#child.endWithin(END_MS);
  }

  #call(seconds: number, step: "check" | "begin" | "finish", ...values: unknown[]): Promise<unknown> {
    const work = this.#child.channel.call(step, ...values);
    return within(seconds, work, `it has not responded for ${seconds} s`);
  }
}

/**
 * Returns the states that can be sent to another process, and calls `left` with the keys of the
 * others.
 */
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
