/**
 * The common part of both runners: the worker thread of an isolated module, and the process of a
 * sandboxed one.
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { failure } from "../module/code.ts";
import { Deadline } from "../module/deadline.ts";
import type { ModuleLimits } from "../permissions/index.ts";
import type { Channel } from "../relay/channel.ts";
import { innerPath } from "../relay/inner_request.ts";
import { watchLiveness } from "../relay/liveness.ts";
import type { SandboxLayerState } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { removeLeftFolders } from "./left_folders.ts";
import { LineAllowance } from "./limits/line_allowance.ts";
import { RequestAccount } from "./limits/request_account.ts";
import type { Described, SourceFile } from "./messages.ts";
import { readDescribed } from "./received.ts";
import { removeFolder } from "./remove_folder.ts";
import type { RunnerKind } from "./runner_kind.ts";
import type { IsolationDeps } from "./task.ts";

/** Called when an instance comes near a limit. */
export interface RunnerEvents {
  /** A fresh instance should take over. Called again and again. */
  nearly(reason: string): void;
  /** The operator should know. Called again and again. */
  noticed(reason: string): void;
}

/** Milliseconds for which the end of a module waits until its temporary files are removed. */
const MAX_REMOVAL_MS = 2000;

export type RunnerHandlers = Record<string, (...values: never[]) => unknown>;

/** Runs the code of one module, and one instance of it, outside of the host's thread. */
export abstract class ModuleRunner {
  readonly kind: RunnerKind;
  readonly source: SourceFile;
  abstract readonly channel: Channel;
  /** Resolves to the reason when the code has ended and its last messages have been handled. */
  abstract readonly ended: Promise<string>;
  /** Resolves when the code posts messages to the parent thread, which ignores them. */
  readonly posted: Promise<void> = new Promise(() => undefined);
  /** A folder that no other user can read. It is removed when the code has ended. */
  readonly folder: string;
  /** The path of the socket at which the code serves requests. */
  readonly path: string;
  /** Functions that the code may call once an instance runs. */
  protected readonly handlers: RunnerHandlers = {};
  isAlive = true;
  readonly requests: RequestAccount;
  /** Bounds what it adds to the log. */
  readonly lines: LineAllowance | undefined;
  /** Set once an instance runs. */
  protected events: RunnerEvents | undefined;
  /** The layers of its sandbox; undefined without one. */
  layers: readonly SandboxLayerState[] | undefined;
  readonly #loadTimeout: number;

  constructor(
    kind: RunnerKind,
    { name, file, directory, root }: SourceFile,
    deps: IsolationDeps,
    limits?: ModuleLimits,
  ) {
    const { loadTimeout, log } = deps.context;
    this.kind = kind;
    this.requests = new RequestAccount(limits?.requests ?? Number.POSITIVE_INFINITY);
    this.lines = limits && new LineAllowance(limits.log_lines, log.of(name, "*"));
    this.source = { name, file, directory, root };
    this.#loadTimeout = loadTimeout;
    removeLeftFolders();
    this.folder = mkdtempSync(join(tmpdir(), `modhost-${kind}-`));
    this.path = innerPath(this.folder, "http");
  }

  /** Ends the code. `reason` replaces the one that the code itself gives. */
  abstract end(reason?: string): Promise<void>;

  /**
   * Evaluates the file.
   * @throws {ModhostError} MODULE_FAILED, MODULE_INVALID
   */
  async describe(): Promise<Described> {
    try {
      const described = this.channel.call("describe");
      const received = await new Deadline(this.#loadTimeout).result(described, "load_timeout");
      return readDescribed(received, this.source);
    } catch (error) {
      await this.end();
      throw failure(this.source, "being imported", error);
    }
  }

  /** The code runs from now on: until then nothing limits what the process uses. */
  begin(): void {}

  /** Sets the functions that the code may call. */
  serve(handlers: RunnerHandlers): void {
    Object.assign(this.handlers, handlers);
  }

  /** Ends the code when it does not respond for `silence` seconds, or exceeds its limits. */
  watch(silence: number, events: RunnerEvents): void {
    this.events = events;
    const end = watchLiveness(this.channel, silence, {
      silent: (seconds) => void this.end(`it did not respond for ${Math.ceil(seconds)} s`),
      alive: (value) => this.responded(value),
    });
    void this.ended.then(end);
  }

  /** Called with each reply to a ping. */
  protected responded(_value: unknown): void {
    this.lines?.report();
  }

  /**
   * Must be called when the code has ended. Resolves to the reason that names the worker or sandbox
   * once its folder is removed.
   */
  protected async finish(how: string): Promise<string> {
    const reason = `its ${this.kind} ended: ${how}`;
    this.channel.end(new ModhostError("ISOLATED_ENDED", { name: this.source.name, reason }));
    await Promise.race([removeFolder(this.folder), sleep(MAX_REMOVAL_MS, undefined, { ref: false })]);
    return reason;
  }
}
