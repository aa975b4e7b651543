/**
 * Modules that a program or the command line passes to a host, in addition to those of the
 * configuration.
 */
import { resolve } from "node:path";
import { isPath, locatePath, type ModuleSource } from "./module/locate.ts";
import type { ModuleDefinition, ModuleFunction } from "./types.ts";
import { ModhostError } from "./util/errors.ts";
import { moduleName } from "./util/module_name.ts";

/**
 * A module to load in addition to those that the configuration enables: a path, or the module
 * itself.
 */
export type InlineModule = string | ModuleFunction | (ModuleDefinition & { readonly name: string });

/**
 * Returns the source of each module. Paths are relative to `cwd`; paths inside a module without a
 * file are relative to `directory`.
 * @throws {ModhostError} MODULE_NOT_FOUND, MODULE_INVALID for two modules of the same name, and for
 * one without a name
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

/** Returns the entry for `load`: paths are resolved from `cwd`, names stay. */
export function entryFrom(cwd: string, entry: string): string {
  return isPath(entry) ? resolve(cwd, entry) : entry;
}
