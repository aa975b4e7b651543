/** The folders of modules, in which the command line looks for commands and checks. */
import { realpathSync } from "node:fs";
import { dirname, sep } from "node:path";
import type { Config } from "../config/index.ts";
import { Catalog } from "../module/catalog.ts";
import { bundledModules } from "../util/package.ts";

export { installHooks } from "../module/fresh_import.ts";

/** The folder that contains a module's file and no files of other modules. */
export interface ModuleFolder {
  /** The name of the module. */
  readonly module: string;
  readonly path: string;
}

/**
 * Returns the folders of modules that do not come with the host: those that the configuration
 * names, and those in folders of `plugin_paths`. A module that cannot be found is left out, because
 * the check of the configuration reports it. A module of a single file has no folder.
 */
export function configuredFolders(config: Config): ModuleFolder[] {
  const catalog = new Catalog(config, [], () => 0);
  const bundled = realpathSync(bundledModules) + sep;
  return catalog.named().flatMap((module) => {
    const path = folderOf(catalog, module);
    return path === undefined || path.startsWith(bundled) ? [] : [{ module, path }];
  });
}

function folderOf(catalog: Catalog, module: string): string | undefined {
  try {
    const { file, root } = catalog.locate(module);
    return file === undefined || root === undefined ? undefined : dirname(file);
  } catch {
    return undefined;
  }
}
