/** Modules that a program or the command line hands to a host, beside those of the configuration. */
import { resolve } from "node:path";
import { isPath, locatePath, type ModuleSource, moduleName } from "./module/locate.ts";
import type { ModuleDefinition, ModuleFunction } from "./types.ts";
import { ModhostError } from "./util/errors.ts";

/** A module to load beside those that the configuration enables: a path, or the module itself. */
export type InlineModule = string | ModuleFunction | (ModuleDefinition & { readonly name: string });

/**
 * Where each of them is. Paths count from `cwd`, those in a module that is no file from `directory`.
 * @throws {ModhostError} MODULE_NOT_FOUND, MODULE_INVALID for two of one name, and one without
 */
export function inlineModules(modules: readonly InlineModule[], cwd: string, directory: string): ModuleSource[] {
  const sources = modules.map((module, index): ModuleSource => {
    if (typeof module === "string") return locatePath(resolve(cwd, module));
    const definition = typeof module === "function" ? { load: module } : module;
    if (typeof module !== "function" && typeof module?.name !== "string") {
      const reason = 'only a path or a function may come without a name: write { name: "hello", load }';
      throw new ModhostError("MODULE_INVALID", { file: `modules[${index}]`, reason });
    }
    const name = moduleName(module.name) || `inline_${index + 1}`;
    return { name, definition, file: undefined, directory, root: undefined };
  });
  const byName = new Map<string, ModuleSource>();
  for (const source of sources) {
    const { name, file } = source;
    const other = byName.get(name);
    byName.set(name, source);
    if (other === undefined) continue;
    const reason = `${other.file ?? "another module"} is called ${name}, too: rename one of them`;
    throw new ModhostError("MODULE_INVALID", { file: file ?? name, reason });
  }
  return sources;
}

/** What `load` is asked for: paths count from `cwd`, names stay. */
export function entryFrom(cwd: string, entry: string): string {
  return isPath(entry) ? resolve(cwd, entry) : entry;
}
