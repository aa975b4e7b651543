/** A process that this one starts, with a channel to it. */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import type { Handlers } from "./channel.ts";
import { IpcChannel, type TakeConnection } from "./ipc_channel.ts";

/**
 * Milliseconds to wait for its last output and messages after it has ended. Its children may keep
 * its output open.
 */
const LAST_MS = 1000;

/** How a process has ended. */
export interface Ended {
  /** A predicate for people: "has ended with exit code 1". */
  readonly how: string;
  readonly code: number | null;
}

export interface IpcChildOptions extends Pick<SpawnOptions, "cwd" | "env"> {
  readonly command: readonly [string, ...string[]];
  /** The streams of the process. A descriptor for the channel is added. */
  readonly stdio: readonly ("inherit" | "ignore" | "pipe" | number)[];
  readonly handlers: Handlers;
  readonly onConnection: TakeConnection;
  onStray?(message: unknown): void;
}

export class IpcChild {
  readonly channel: IpcChannel;
  /**
   * Resolves when the process has ended and its last messages have been read. The channel has ended
   * then.
   */
  readonly ended: Promise<Ended>;
  readonly process: ChildProcess;

  constructor({ command, stdio, handlers, onConnection, onStray, ...options }: IpcChildOptions) {
    const [executable, ...args] = command;
    const child = spawn(executable, args, { ...options, stdio: [...stdio, "ipc"], serialization: "advanced" });
    this.process = child;
    this.channel = new IpcChannel(child as never, handlers, onConnection, onStray);
    const ended = Promise.withResolvers<Ended>();
    this.ended = ended.promise;
    const end = (how: string, code: number | null) => {
      this.channel.end(new Error(`it ${how}`));
      ended.resolve({ how, code });
    };
    child.on("error", (error) => child.pid === undefined && end(`cannot be started: ${error.message}`, null));
    child.on("exit", (code, signal) => {
      const how = `has ended with ${signal ?? `exit code ${code}`}`;
      const late = setTimeout(() => end(how, code), LAST_MS);
      child.once("close", () => {
        clearTimeout(late);
        end(how, code);
      });
    });
  }

  /**
   * Calls back when code in the process has closed its channel: the process runs, but cannot be
   * controlled.
   */
  onCutOff(callback: () => void): void {
    const { process: child } = this;
    const check = () => {
      if (child.exitCode === null && child.signalCode === null) callback();
    };
    child.on("disconnect", () => setTimeout(check, LAST_MS).unref());
  }

  /** Resolves when the process has ended. Kills it after `ms`. */
  async endWithin(ms: number): Promise<void> {
    const kill = setTimeout(() => this.process.kill("SIGKILL"), ms);
    await this.ended;
    clearTimeout(kill);
  }
}

/**
 * Returns the command that starts this program again, without the debugger, which serves one
 * process. `words`: the arguments of the program; default: those of this process.
 */
export function ownCommand(words: readonly string[] = process.argv.slice(2)): [string, ...string[]] {
  const options = process.execArgv.filter((option) => !option.startsWith("--inspect"));
  return [process.execPath, ...options, ...process.argv.slice(1, 2), ...words];
}
