/** Loads, unloads and reloads single modules of a running host. */

import type { Progress } from "../operations/change.ts";
import { warnOfOpenApps } from "../operations/protection.ts";
import type { ModuleChange } from "../operations/server.ts";
import type { ModuleLog } from "../types.ts";
import { moduleName } from "../util/module_name.ts";
import type { HostParts } from "./parts.ts";

export interface WantedChange {
  readonly kind: ModuleChange;
  /** The module's name; for a load, also the path of its file. */
  readonly entry: string;
  readonly host: string | undefined;
}

/** @throws {ModhostError} UNKNOWN_HOST, MODULE_NOT_LOADED, MODULE_FAILED, ... */
export async function changeModule(
  { config, modules, catalog, quarantine }: HostParts,
  { kind, entry, host }: WantedChange,
  progress: Progress,
  log: ModuleLog,
): Promise<void> {
  const name = moduleName(entry);
  if (host !== undefined) catalog.assertHost(host);
  if (kind === "unload") warnOfOpenApps(modules.leavingWith(name, host), config, progress, log);
  if (kind === "load") await modules.load(entry, host);
  else await modules[kind](name, host, progress);
  quarantine.forget(name, host);
}
