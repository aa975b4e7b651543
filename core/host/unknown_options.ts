import { type UnknownName, unknownMessage } from "../config/index.ts";
import type { HttpModule } from "../http/index.ts";
import type { Modules } from "../module/lifecycle.ts";
import type { ModuleLog } from "../types.ts";
import { isSecondary } from "./siblings.ts";
import type { HostOptions } from "./types.ts";

/** Returns the names of all apps; undefined in a process that does not run all modules. */
export function appsOf(options: HostOptions, modules: Modules): ReadonlySet<string> | undefined {
  if (isSecondary(options)) return undefined;
  const http = modules.find("http", "*")?.exports as HttpModule | undefined;
  return new Set(http?.routes().map(({ app }) => app));
}

/** Logs a warning for each option that no module reads. */
export function warnOfUnknown(log: ModuleLog, unknown: readonly UnknownName[]): void {
  for (const name of unknown) log.warn("%s", unknownMessage(name));
}
