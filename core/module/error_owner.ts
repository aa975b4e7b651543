import { sep } from "node:path";
import { framesOf } from "./code.ts";
import type { Instance } from "./instance.ts";

/**
 * The instance whose code an error comes from: of the first frame of its stack that lies in the file or in the own folder
 * of a module. Undefined when there is none, as for whatever is no Error.
 */
export function errorOwner(instances: readonly Instance[], error: unknown): Instance | undefined {
  for (const { path } of framesOf(error)) {
    const owner =
      instances.find(({ code }) => code.source.file === path) ??
      instances.find(({ code: { source } }) => source.root !== undefined && path.startsWith(source.root + sep));
    if (owner !== undefined) return owner;
  }
  return undefined;
}
