import { Deadline } from "./deadline.ts";
import type { Instance } from "./instance.ts";
import type { Instances } from "./instances.ts";
import type { ModulesDeps } from "./modules_deps.ts";
import { labelOf, unheard } from "./operation.ts";

export interface UnloaderDeps extends Pick<ModulesDeps, "grace" | "hangUp" | "announce"> {
  readonly catalog: Pick<ModulesDeps["catalog"], "forget">;
  readonly instances: Instances;
}

/** Ends instances: withdrawn first, so that nothing new reaches them, and closed once what they had begun is over. */
export class Unloader {
  readonly #deps: UnloaderDeps;

  constructor(deps: UnloaderDeps) {
    this.#deps = deps;
  }

  /** Unloads instances that are in order, dependants first. */
  async unloadAll(
    leaving: readonly Instance[],
    deadline = new Deadline(Number.POSITIVE_INFINITY),
    progress = unheard,
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

  /** Closes instances that are withdrawn; `waits`: what they had begun. */
  async close(
    leaving: readonly Instance[],
    waits: readonly Promise<unknown>[],
    deadline = new Deadline(Number.POSITIVE_INFINITY),
  ): Promise<void> {
    const { instances } = this.#deps;
    const grace = this.#deps.grace();
    await deadline.within(grace).wait(Promise.all(waits));
    // A module that drains connections itself takes as long again; the second is for what it does afterwards.
    for (const instance of leaving) {
      await instance.close(deadline.within(grace + 1));
      instances.keep(instance);
    }
  }
}
