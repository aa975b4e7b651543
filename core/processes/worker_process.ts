/** The supervisor's side of the channel to a worker process. */
import type { ReplicatedChange } from "../host.ts";
import type { Handlers } from "../relay/channel.ts";
import type { TakeConnection } from "../relay/ipc_channel.ts";
import { IpcChild } from "../relay/ipc_child.ts";
import { watchLiveness } from "../relay/liveness.ts";
import type { LogLevel } from "../types.ts";
import { type Begin, WORKER_VARIABLE } from "./messages.ts";

/** Milliseconds after which a process that takes longer to stop than it may is killed. */
const KILL_MS = 5000;

export interface WorkerProcessDeps {
  readonly command: readonly [string, ...string[]];
  readonly env: NodeJS.ProcessEnv;
  /** Descriptors that the process inherits, from 3 on. */
  readonly sockets: readonly number[];
  /** True if the process writes to the terminal itself; false if `print` gets what it prints. */
  readonly inherits: boolean;
  /** Functions that the process may call. */
  readonly handlers: Handlers;
  /** Takes connections that the process hands over. */
  readonly onConnection: TakeConnection;
  /** Seconds within which the process has to end once it is requested to. */
  readonly stopTimeout: number;
  /** Seconds of silence after which a process that serves is killed; 0: never. */
  readonly silence: number;
  log(level: LogLevel, text: string): void;
  /** Gets what the process prints, whole lines at a time. */
  print(stream: "stdout" | "stderr", text: string): void;
}

export class WorkerProcess extends IpcChild {
  readonly number: number;
  readonly #deps: WorkerProcessDeps;
  #unwatch: () => void = () => undefined;
  /** Changes that were made while the process started. */
  readonly missed: ReplicatedChange[] = [];
  isRunning = false;
  /** Whether the supervisor has requested the process to end. */
  isLeaving = false;

  constructor(number: number, deps: WorkerProcessDeps) {
    const { command, env, inherits, sockets, handlers, onConnection, log } = deps;
    const output = inherits ? "inherit" : "pipe";
    let hasStray = false;
    super({
      command,
      env: { ...env, [WORKER_VARIABLE]: String(number) },
      stdio: ["inherit", output, output, ...sockets],
      handlers,
      onConnection,
      onStray: () => {
        if (!hasStray) log("warn", `Process ${number} sends messages that do not come from the host: they are ignored`);
        hasStray = true;
      },
    });
    this.number = number;
    this.#deps = deps;
    for (const name of ["stdout", "stderr"] as const) {
      const lines = new Lines((text) => deps.print(name, text));
      this.process[name]?.on("data", (piece: Buffer) => lines.add(piece)).on("end", () => lines.end());
    }
    void this.ended.then(() => this.#lose());
    this.onCutOff(() => void this.#cutOff());
  }

  get pid(): number {
    return this.process.pid ?? 0;
  }

  /** Resolves when the process serves. @throws {Error} when it ends before */
  async begin(begin: Begin): Promise<void> {
    await this.channel.call("begin", begin);
    this.isRunning = true;
    const { silence, log } = this.#deps;
    if (silence === 0) return;
    this.#unwatch = watchLiveness(this.channel, silence, {
      silent: (seconds) => {
        this.#unwatch();
        log("error", `Process ${this.number} (${this.pid}) is killed: it did not respond for ${Math.ceil(seconds)} s`);
        this.kill();
      },
    });
  }

  /** Lets the process finish its requests, for the time that it may take. */
  async stop(signal?: string): Promise<void> {
    this.isLeaving = true;
    this.channel.notify("stop", signal);
    await this.endWithin(this.#deps.stopTimeout * 1000 + KILL_MS);
  }

  kill(): void {
    this.process.kill("SIGKILL");
  }

  #lose(): void {
    this.isRunning = false;
    this.#unwatch();
  }

  async #cutOff(): Promise<void> {
    this.#lose();
    this.channel.end(new Error("it has closed its channel to the supervisor"));
    this.#deps.log("error", `Process ${this.number} has closed its channel to the supervisor: it is replaced`);
    await this.stop();
  }
}

/** Joins pieces of text to whole lines. */
class Lines {
  readonly #take: (text: string) => void;
  #rest: Buffer = Buffer.alloc(0);

  constructor(take: (text: string) => void) {
    this.#take = take;
  }

  add(piece: Buffer): void {
    const at = piece.lastIndexOf(10) + 1;
    if (at > 0) this.#take(Buffer.concat([this.#rest, piece.subarray(0, at)]).toString());
    this.#rest = at > 0 ? piece.subarray(at) : Buffer.concat([this.#rest, piece]);
  }

  end(): void {
    if (this.#rest.length > 0) this.#take(`${this.#rest.toString()}\n`);
    this.#rest = Buffer.alloc(0);
  }
}
