/** One process of a server, as the supervisor sees it. */
import type { ReplicatedChange } from "../host.ts";
import type { Handlers } from "../relay/channel.ts";
import type { IpcChannel, TakeConnection } from "../relay/ipc_channel.ts";
import { type Ended, IpcChild } from "../relay/ipc_child.ts";
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
  /** True if the process writes to the terminal itself; false if `printed` gets what it prints. */
  readonly inherits: boolean;
  /** Returns the functions that the process may call. */
  handlers(from: WorkerProcess): Handlers;
  /** Takes connections that the process hands over. */
  readonly onConnection: TakeConnection;
  /** Seconds within which the process has to end once it is requested to. */
  readonly stopTimeout: number;
  /** Seconds that the process may not respond while it serves; 0: any time. */
  readonly silence: number;
  log(level: LogLevel, text: string): void;
  /** Gets what the process prints, whole lines at a time. */
  printed(stream: "stdout" | "stderr", text: string): void;
}

export class WorkerProcess {
  readonly number: number;
  readonly ended: Promise<Ended>;
  readonly #child: IpcChild;
  readonly #deps: WorkerProcessDeps;
  #unwatch: () => void = () => undefined;
  readonly #up = Promise.withResolvers<void>();
  readonly #running = Promise.withResolvers<void>();
  /** Changes that were made while the process started. */
  readonly missed: ReplicatedChange[] = [];
  isRunning = false;
  /** Whether the supervisor has requested the process to end. */
  isLeaving = false;

  constructor(number: number, deps: WorkerProcessDeps) {
    this.number = number;
    this.#deps = deps;
    const output = deps.inherits ? "inherit" : "pipe";
    const handlers = {
      ...deps.handlers(this),
      up: () => this.#up.resolve(),
      running: () => {
        this.isRunning = true;
        this.#running.resolve();
        this.#watch();
      },
    };
    let hasStray = false;
    const child = new IpcChild({
      command: deps.command,
      env: { ...deps.env, [WORKER_VARIABLE]: String(number) },
      stdio: ["inherit", output, output, ...deps.sockets],
      handlers,
      onConnection: deps.onConnection,
      onStray: () => {
        if (!hasStray)
          deps.log("warn", `Process ${number} sends messages that do not come from the host: they are ignored`);
        hasStray = true;
      },
    });
    this.#child = child;
    for (const name of ["stdout", "stderr"] as const) {
      const lines = new Lines((text) => deps.printed(name, text));
      child.process[name]?.on("data", (piece: Buffer) => lines.add(piece)).on("end", () => lines.end());
    }
    this.#up.promise.catch(() => undefined);
    this.#running.promise.catch(() => undefined);
    this.ended = child.ended.then((ended) => {
      this.#lose(ended.how);
      return ended;
    });
    child.onCutOff(() => void this.#cutOff());
  }

  /** Settles everything that waits for this process. */
  #lose(how: string): void {
    this.isRunning = false;
    this.#unwatch();
    const error = new Error(`process ${this.number} ${how}`);
    this.channel.end(error);
    this.#up.reject(error);
    this.#running.reject(error);
  }

  async #cutOff(): Promise<void> {
    this.#lose("has closed its channel to the supervisor");
    this.#deps.log("error", `Process ${this.number} has closed its channel to the supervisor: it is replaced`);
    await this.stop(this.#deps.stopTimeout);
  }

  #watch(): void {
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

  get pid(): number {
    return this.#child.process.pid ?? 0;
  }

  get channel(): IpcChannel {
    return this.#child.channel;
  }

  /**
   * Resolves when the process serves. `begin` is called when the process can receive it. @throws
   * {Error} when it ends before
   */
  async begin(begin: () => Begin): Promise<void> {
    await this.#up.promise;
    this.channel.notify("begin", begin());
    await this.#running.promise;
  }

  /** Lets the process finish its requests, for `seconds` at most. */
  async stop(seconds: number, signal?: string): Promise<void> {
    this.isLeaving = true;
    this.channel.notify("stop", signal);
    await this.#child.endWithin(seconds * 1000 + KILL_MS);
  }

  kill(): void {
    this.#child.process.kill("SIGKILL");
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
