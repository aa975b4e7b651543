import type { Instance } from "./instance.ts";

/**
 * Returns `roots` and all instances that depend on them, directly or indirectly, with dependencies
 * first and otherwise in the order of `instances`.
 */
export function withDependants(instances: readonly Instance[], roots: readonly Instance[]): Instance[] {
  const keys = new Set(roots.map(({ key }) => key));
  const reached = new Set(roots);
  for (let size = 0; size < reached.size; ) {
    size = reached.size;
    for (const instance of instances) {
      if (reached.has(instance) || keys.isDisjointFrom(instance.depends)) continue;
      reached.add(instance);
      keys.add(instance.key);
    }
  }
  return inOrder(instances.filter((instance) => reached.has(instance)));
}

/** Works like `withDependants`, for names of modules that may not be loaded. */
export function namesWithDependants(instances: readonly Instance[], names: ReadonlySet<string>): Set<string> {
  const roots = instances.filter(({ name }) => names.has(name));
  return new Set([...names, ...withDependants(instances, roots).map(({ name }) => name)]);
}

/** Sorts dependencies before the instances that need them; otherwise the order stays. */
export function inOrder(instances: readonly Instance[]): Instance[] {
  const byKey = new Map(instances.map((instance) => [instance.key, instance]));
  const sorted = new Set<Instance>();
  const visiting = new Set<Instance>();
  const visit = (instance: Instance) => {
    if (visiting.has(instance)) return;
    visiting.add(instance);
    for (const key of instance.depends) {
      const dependency = byKey.get(key);
      if (dependency !== undefined) visit(dependency);
    }
    sorted.add(instance);
  };
  for (const instance of instances) visit(instance);
  return [...sorted];
}
