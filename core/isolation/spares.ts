/**
 * Keeps a process ready for each sandboxed module whose operator asks for one
 * (`modules.NAME.spare`). The process is started, restricted and has loaded its program. It has not
 * evaluated the module, because code that acts while it is evaluated would act twice.
 */
import { createHash } from "node:crypto";
import { realpathSync, statSync } from "node:fs";
import type { ModuleLog } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import type { SourceFile } from "./messages.ts";
import { barrierOf, readablePaths } from "./policy.ts";
import type { ModuleRunner } from "./runner.ts";
import { heapOf, type IsolatedRights, type IsolationDeps } from "./task.ts";

/**
 * Milliseconds between the start of an instance and that of its spare. So a module that crashes as
 * soon as it is loaded starts one process at a time.
 */
const QUIET_MS = 1000;

/** Maximum number of such pauses while the module has requests: event streams may never end. */
const MAX_PAUSES = 30;

/** Milliseconds until a spare that has ended by itself is replaced: the first time, and at most. */
const RETRY_MS = 1000;
const MAX_RETRY_MS = 600_000;

/**
 * Milliseconds for which the spare of a module that has crashed waits for the restart, and between
 * two looks whether the module was unloaded meanwhile.
 */
const MAX_ORPHAN_MS = 10_000;
const LOOK_MS = 250;

/** How the spare of a module is made. */
export interface SpareRecipe {
  readonly name: string;
  readonly log: Pick<ModuleLog, "warn">;
  /** Returns a text that differs when a process made now would have other rights. */
  key(): string;
  create(): ModuleRunner;
  /** Whether nothing is to be disturbed by the start of a process. */
  isQuiet(): boolean;
  /** Whether the module is loaded, or will be restarted. */
  isExpected(): boolean;
}

export class Spares {
  readonly #byModule = new Map<string, ModuleSpare>();

  /** Returns the process that waits for a module, unless it was made for other rights. */
  take(name: string, key: string): ModuleRunner | undefined {
    return this.#byModule.get(name)?.take(key);
  }

  /**
   * Keeps a process ready as long as an instance runs. The returned function must be called when
   * the instance has ended. After a crash the process waits for the restart.
   */
  keep(recipe: SpareRecipe): (hasCrashed: boolean) => void {
    const { name } = recipe;
    const spare = this.#byModule.get(name) ?? new ModuleSpare();
    this.#byModule.set(name, spare);
    return spare.keep(recipe);
  }

  /** Whether a process is ready to take over. */
  isReady(name: string): boolean {
    return this.#byModule.get(name)?.isReady === true;
  }

  /** Ends all spares, for good. */
  async close(): Promise<void> {
    await Promise.all([...this.#byModule.values()].map((spare) => spare.end()));
    this.#byModule.clear();
  }
}

interface WaitingProcess {
  readonly key: string;
  readonly runner: ModuleRunner;
  isReady: boolean;
}

/** The spare of one module. */
class ModuleSpare {
  #recipe: SpareRecipe | undefined;
  #process: WaitingProcess | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Instances that run. */
  #instances = 0;
  /** Number of spares in a row that have ended by themselves. */
  #failures = 0;

  get isReady(): boolean {
    return this.#process?.isReady === true;
  }

  take(key: string): ModuleRunner | undefined {
    const found = this.#process;
    if (found === undefined) return undefined;
    this.#process = undefined;
    if (this.#instances > 0) this.#plan();
    if (found.key === key && found.runner.isAlive) {
      this.#failures = 0;
      return found.runner;
    }
    void found.runner.end();
    return undefined;
  }

  keep(recipe: SpareRecipe): (hasCrashed: boolean) => void {
    this.#instances += 1;
    this.#recipe = recipe;
    this.#discardOther(recipe);
    this.#plan();
    let isOver = false;
    return (hasCrashed) => {
      if (isOver) return;
      isOver = true;
      this.#instances -= 1;
      if (this.#instances > 0) return;
      if (hasCrashed && this.#process !== undefined) this.#await(recipe, performance.now() + MAX_ORPHAN_MS);
      else void this.end();
    };
  }

  /** Ends the process that waits, and starts no other one. */
  async end(): Promise<void> {
    clearTimeout(this.#timer);
    this.#recipe = undefined;
    const { runner } = this.#process ?? {};
    this.#process = undefined;
    await runner?.end();
    await runner?.ended;
  }

  /** Starts a process once the module is quiet, unless one waits that has the right rights. */
  #plan(ms = QUIET_MS, pauses = MAX_PAUSES): void {
    this.#later(ms, () => {
      const recipe = this.#recipe;
      if (recipe === undefined) return;
      if (recipe.isQuiet() || pauses === 0) this.#start(recipe);
      else this.#plan(QUIET_MS, pauses - 1);
    });
  }

  /** Ends the process that waits if it has other rights. Returns the key of those of the module. */
  #discardOther(recipe: SpareRecipe): string {
    const key = recipe.key();
    if (this.#process === undefined || this.#process.key === key) return key;
    void this.#process.runner.end();
    this.#process = undefined;
    return key;
  }

  #start(recipe: SpareRecipe): void {
    try {
      const key = this.#discardOther(recipe);
      if (this.#process !== undefined) return;
      const runner = recipe.create();
      const started = { key, runner, isReady: false };
      this.#process = started;
      void runner.channel.call("ping").then(
        () => {
          started.isReady = true;
        },
        () => undefined,
      );
      void runner.ended.then((reason) => this.#ended(recipe, started, reason));
    } catch (error) {
      this.#failed(recipe, reasonOf(error));
    }
  }

  #ended(recipe: SpareRecipe, process: WaitingProcess, reason: string): void {
    if (this.#process !== process) return;
    this.#process = undefined;
    if (this.#instances > 0) this.#failed(recipe, reason);
  }

  #failed({ log }: SpareRecipe, reason: string): void {
    const pause = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** this.#failures);
    this.#failures += 1;
    log.warn("has lost its spare process, and gets another one in %d s: %s", pause / 1000, reason);
    this.#plan(pause);
  }

  /** Waits for the restart of the module. */
  #await(recipe: SpareRecipe, until: number): void {
    this.#later(LOOK_MS, () => {
      if (recipe.isExpected() && performance.now() < until) this.#await(recipe, until);
      else void this.end();
    });
  }

  #later(ms: number, callback: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(callback, ms).unref();
  }
}

/**
 * Returns a text that differs when a process of the module would now be started in another way. The
 * kernel attaches its rules to inodes: a folder that was replaced is out of reach of a process that
 * was started before.
 */
export function spareKey(source: SourceFile, deps: IsolationDeps, { rights }: IsolatedRights): string {
  const { name, file, directory, root } = source;
  const { write = [], run = [] } = rights.policy ?? {};
  const paths = new Set([file, ...readablePaths(rights), ...write, ...run]);
  try {
    const facts = {
      source: { name, file, directory, root },
      rights,
      loadTimeout: deps.context.loadTimeout,
      heap: heapOf(deps, { rights }),
      barrier: barrierOf([file], rights),
      paths: [...paths].map(identityOf),
    };
    // The facts contain the environment of the module, which nothing else needs to keep.
    return createHash("sha256").update(JSON.stringify(facts)).digest("base64");
  } catch {
    // A file that cannot be inspected fits no process.
    return crypto.randomUUID();
  }
}

function identityOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? path : `${realpathSync(path)} ${found.dev} ${found.ino}`;
}
