/** Builds instances of modules, after the modules that they depend on. */
import { ModhostError } from "../util/errors.ts";
import type { ModuleCode } from "./code.ts";
import { Instance, type InstanceOptions, keyOf } from "./instance.ts";
import type { Instances } from "./instances.ts";
import type { ModulesDeps } from "./modules_deps.ts";
import { newOperation, type Operation } from "./operation.ts";

export interface BuilderDeps extends Pick<ModulesDeps, "context" | "catalog"> {
  readonly instances: Instances;
  /**
   * Loads the module that `name` depends on, unless it runs already. @throws {ModhostError}
   * MODULE_CYCLE, MODULE_DEPENDENCY
   */
  ensureDependency(name: string, dependency: string, host: string, operation: Operation): Promise<void>;
}

export class Builder {
  readonly #deps: BuilderDeps;

  constructor(deps: BuilderDeps) {
    this.#deps = deps;
  }

  /**
   * Runs the code until no dependency is missing. An attempt that needs a missing one is undone and
   * starts again once that is loaded.
   */
  async build(
    code: ModuleCode,
    { name, host }: { name: string; host: string },
    options: InstanceOptions & { saved?: { value: unknown } },
    operation: Operation = newOperation({ chain: [name] }),
  ): Promise<Instance> {
    const { context, catalog, instances, ensureDependency } = this.#deps;
    for (const dependency of options.reloading ? code.depends : []) {
      const planned = [keyOf(dependency, host), keyOf(dependency, "*")].some((key) => options.group?.has(key));
      if (!planned) await ensureDependency(name, dependency, host, operation);
    }
    for (;;) {
      const instance = new Instance(code, host, context, options);
      for (const dependency of code.depends) {
        const found = instances.dependencyOf(instance, dependency);
        if (found !== undefined) instance.depends.add(found.key);
      }
      instances.begin(instance);
      const outcome = await instance
        .run(() => catalog.hostsOf(name), options.saved)
        .catch((error: unknown) => ({ error }));
      instances.end(instance);
      if (instance.missing === undefined && outcome === undefined) {
        if (!options.reloading || instance.host === host) return instance;
        await instance.abandon();
        const reason = "it has become global: unload it, then load it";
        throw new ModhostError("MODULE_FAILED", { name, step: "reloading", reason });
      }
      await instance.abandon();
      if (instance.missing === undefined) throw outcome?.error;
      await ensureDependency(name, instance.missing, instance.host, operation);
    }
  }
}
