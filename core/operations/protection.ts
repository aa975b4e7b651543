/**
 * Handles protection that a configuration requires and that no module provides: a start or reload
 * is refused, an unload causes a warning.
 */
import { type Config, openAppsText } from "../config/index.ts";
import type { Catalog } from "../module/catalog.ts";
import type { ModuleLog } from "../types.ts";
import type { Progress } from "./change.ts";

/**
 * Checks for misspelt names of options that protect, for such options whose modules are not loaded,
 * and for misspelt names of modules in the option `modules`.
 * @throws {ModhostError} CONFIG_INVALID
 */
export async function checkNames(
  config: Config,
  catalog: Pick<Catalog, "missingGuards" | "unknownModules">,
  apps?: ReadonlySet<string>,
  isGone?: (owner: string) => boolean,
): Promise<void> {
  config.missGuards(await catalog.missingGuards(config.unreadNames(isGone)));
  config.checkNames(apps, isGone);
  config.checkModules(() => catalog.unknownModules());
}

/**
 * Warns, in the record of an unload and in the log, about the apps that the unloaded modules
 * protected.
 */
export function warnOfOpenApps(
  leaving: readonly string[],
  config: Config,
  { warn }: Pick<Progress, "warn">,
  log: Pick<ModuleLog, "warn">,
): void {
  for (const module of leaving) {
    const text = openAppsText(module, config.protectedApps(module));
    if (text === undefined) continue;
    warn(text);
    log.warn("%s", text);
  }
}
