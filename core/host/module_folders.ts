/** The folders of modules, in which the command line looks for commands and checks. */
import { realpathSync } from "node:fs";
import { dirname, sep } from "node:path";
import type { Config } from "../config/index.ts";
import { Catalog } from "../module/catalog.ts";
import { moduleSettings } from "../module/rights.ts";
import { bundledModules } from "../util/package.ts";

export { installHooks } from "../module/fresh_import.ts";

/** The folder that contains a module's file and no files of other modules. */
export interface ModuleFolder {
  /** The name of the module. */
  readonly module: string;
  readonly path: string;
  /** Whether none of its code may run outside of its sandbox. */
  readonly isSandboxed: boolean;
}

/**
 * Returns the folders of modules that do not come with the host: those that the configuration
 * names, and those in folders of `plugin_paths`. A module that cannot be found is left out, because
 * the check of the configuration reports it. A module of a single file has no folder.
 */
export function configuredFolders(config: Config): ModuleFolder[] {
  const catalog = new Catalog(config, [], () => 0);
  const bundled = realpathSync(bundledModules) + sep;
  return catalog.named().flatMap((named) => {
    const found = folderOf(catalog, named);
    if (found === undefined || found.path.startsWith(bundled)) return [];
    return [{ ...found, isSandboxed: moduleSettings(config, found.module).run === "sandboxed" }];
  });
}

function folderOf(catalog: Catalog, named: string): Pick<ModuleFolder, "module" | "path"> | undefined {
  try {
    const { name, file, root } = catalog.locate(named);
    return file === undefined || root === undefined ? undefined : { module: name, path: dirname(file) };
  } catch {
    return undefined;
  }
}
