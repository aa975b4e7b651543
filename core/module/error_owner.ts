import { sep } from "node:path";
import { framesOf } from "./code.ts";
import type { ModuleSource } from "./locate.ts";

interface Owner {
  readonly code: { readonly source: Pick<ModuleSource, "file" | "root"> };
}

/**
 * Returns the instance, or the stored record of one, whose code an error comes from: the first
 * stack frame in the file or own folder of a module decides. Undefined if there is none, as for
 * values that are not Errors.
 */
export function errorOwner<T extends Owner>(instances: readonly T[], error: unknown): T | undefined {
  for (const { path } of framesOf(error)) {
    const owner =
      instances.find(({ code }) => code.source.file === path) ??
      instances.find(({ code: { source } }) => source.root !== undefined && path.startsWith(source.root + sep));
    if (owner !== undefined) return owner;
  }
  return undefined;
}
