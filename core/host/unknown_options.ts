import { type UnknownName, unknownMessage } from "../config/index.ts";
import type { ModuleLog } from "../types.ts";

/** Tells which options nobody reads. */
export function warnOfUnknown(log: ModuleLog, unknown: readonly UnknownName[]): void {
  for (const name of unknown) log.warn("%s", unknownMessage(name));
}
