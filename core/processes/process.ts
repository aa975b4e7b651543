/** One process of a server, as the supervisor sees it. */
import { type ChildProcess, spawn } from "node:child_process";
import type { FollowStep } from "../host.ts";
import type { Channel } from "../isolation/channel.ts";
import { Link, type TakeConnection } from "./link.ts";
import { type Begin, WORKER } from "./messages.ts";

/** Milliseconds after which one that was asked to end, or whose stop takes longer than it may, is killed. */
const KILL_MS = 5000;

/** How a process has ended. */
export interface Ended {
  /** For people. */
  readonly how: string;
  readonly code: number | null;
}

export interface WorkerProcessDeps {
  readonly command: readonly [string, ...string[]];
  readonly env: NodeJS.ProcessEnv;
  /** Descriptors that it gets, from 3 on. */
  readonly sockets: readonly number[];
  /** It has its own terminal: what it prints is not gathered. */
  readonly inherits: boolean;
  /** What it may ask. */
  handlers(from: WorkerProcess): ConstructorParameters<typeof Channel>[1];
  /** It passes a connection on. */
  readonly passed: TakeConnection;
  /** Takes what it prints, whole lines at a time. */
  printed(stream: "stdout" | "stderr", text: string): void;
}

export class WorkerProcess {
  readonly number: number;
  readonly link: Link;
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcess;
  readonly #up = Promise.withResolvers<void>();
  readonly #running = Promise.withResolvers<void>();
  /** Steps that were made while it began. */
  readonly missed: FollowStep[] = [];
  isRunning = false;
  /** It was asked to end. */
  isLeaving = false;

  constructor(number: number, deps: WorkerProcessDeps) {
    this.number = number;
    const [executable, ...args] = deps.command;
    const output = deps.inherits ? "inherit" : "pipe";
    const child = spawn(executable, args, {
      env: { ...deps.env, [WORKER]: String(number) },
      stdio: ["inherit", output, output, ...deps.sockets, "ipc"],
      serialization: "advanced",
    });
    this.#child = child;
    for (const name of ["stdout", "stderr"] as const) {
      const lines = new Lines((text) => deps.printed(name, text));
      child[name]?.on("data", (piece: Buffer) => lines.add(piece)).on("end", () => lines.end());
    }
    const ended = Promise.withResolvers<Ended>();
    this.ended = ended.promise;
    const handlers = {
      ...deps.handlers(this),
      up: () => this.#up.resolve(),
      running: () => {
        this.isRunning = true;
        this.#running.resolve();
      },
    };
    this.link = new Link(child as never, handlers, deps.passed);
    const left = (how: string, code: number | null) => {
      this.isRunning = false;
      const error = new Error(`process ${number} ${how}`);
      this.link.channel.end(error);
      this.#up.reject(error);
      this.#running.reject(error);
      ended.resolve({ how, code });
    };
    this.#up.promise.catch(() => undefined);
    this.#running.promise.catch(() => undefined);
    child.on("error", (error) => left(`cannot be started: ${error.message}`, null));
    child.on("close", (code, signal) => left(`has ended with ${signal ?? `exit code ${code}`}`, code));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get channel(): Channel {
    return this.link.channel;
  }

  /** Resolves when it serves. `begin` is asked for when it can be told. @throws {Error} when it ends before */
  async begin(begin: () => Begin): Promise<void> {
    await this.#up.promise;
    this.channel.tell("begin", begin());
    await this.#running.promise;
  }

  /** Lets it finish its requests, for `seconds` at most. */
  async stop(seconds: number, signal?: string): Promise<void> {
    this.isLeaving = true;
    this.channel.tell("stop", signal);
    const kill = setTimeout(() => this.kill(), seconds * 1000 + KILL_MS);
    await this.ended;
    clearTimeout(kill);
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}

/** Pieces of text as whole lines. */
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
