import type { UnknownName } from "../config/index.ts";
import type { ModuleLog } from "../types.ts";

/** Tells which options nobody reads. */
export function warnOfUnknown(log: ModuleLog, unknown: readonly UnknownName[]): void {
  for (const { path, nearest } of unknown)
    log.warn("Nothing reads the option %s%s", path, nearest === undefined ? "" : `: is ${nearest} meant?`);
}
