import type { ModuleLog } from "../types.ts";
import { startedBy, whenStartedLate } from "../util/started.ts";
import type { Usage } from "../util/usage.ts";
import { Deadline } from "./deadline.ts";
import type { Instance } from "./instance.ts";
import type { Instances } from "./instances.ts";
import type { ModulesDeps } from "./modules_deps.ts";
import { labelOf, noProgress } from "./operation.ts";

export interface UnloaderDeps extends Pick<ModulesDeps, "grace" | "hangUp" | "announce"> {
  readonly catalog: Pick<ModulesDeps["catalog"], "forget">;
  readonly instances: Instances;
}

/**
 * Unloads instances. They are withdrawn first, so that nothing new reaches them, and closed once
 * their open work has ended.
 */
export class Unloader {
  readonly #deps: UnloaderDeps;

  constructor(deps: UnloaderDeps) {
    this.#deps = deps;
  }

  /** Unloads instances, which must be in order with dependants first. */
  async unloadAll(
    leaving: readonly Instance[],
    deadline = new Deadline(Number.POSITIVE_INFINITY),
    progress = noProgress,
  ): Promise<void> {
    const { instances, catalog, hangUp, announce } = this.#deps;
    const waits = leaving.flatMap((instance) => instance.withdraw());
    progress.step(`withdrew ${leaving.map(labelOf).join(", ")}`);
    progress.inForce();
    await this.close(leaving, waits, deadline);
    for (const instance of leaving) {
      const { name, host } = instance;
      instances.remove(instance);
      hangUp(name);
      if (!instances.has(name)) catalog.forget(name);
      announce("module-unloaded", { module: name, host });
    }
    progress.step("unloaded");
  }

  /** Closes withdrawn instances; `waits` are the promises of their open work. */
  async close(
    leaving: readonly Instance[],
    waits: readonly Promise<unknown>[],
    deadline = new Deadline(Number.POSITIVE_INFINITY),
  ): Promise<void> {
    const { instances } = this.#deps;
    const grace = this.#deps.grace();
    await deadline.within(grace).wait(Promise.all(waits));
    // A module that drains connections itself takes the grace period again; the extra second is for
    // its work afterwards.
    for (const instance of leaving) {
      await instance.close(deadline.within(grace + 1));
      const { usage, code, module, name } = instance;
      const sharing = [...instances.live(), ...leaving].filter((one) => one.code === code);
      // Instances of several hosts share the same code: only the last of them accounts for what the
      // evaluation has started.
      const isLast = sharing.every((one) => leaving.includes(one)) && sharing.at(-1) === instance;
      instances.recordUnfinished(instance);
      for (const account of isLast && code.evaluated !== undefined ? [usage, code.evaluated] : [usage]) {
        const { log } = module;
        const check = () => {
          instances.recordStarted(name, account);
          setTimeout(warnOfLeft, END_MS, account, log).unref();
        };
        if (startedBy(account).length > 0) check();
        whenStartedLate(account, check);
      }
    }
  }
}

/**
 * Milliseconds that servers, threads and processes have to end after their module is unloaded: many
 * modules stop them without waiting.
 */
const END_MS = 1000;

/** Logs a warning about what a module has left running. */
function warnOfLeft(account: Usage, log: ModuleLog): void {
  const left = startedBy(account).map((each) => each.describe());
  if (left.length === 0) return;
  log.warn("left %s running: stop it in module.unload or with module.on_release", left.join(", "));
}
