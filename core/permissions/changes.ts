/** Finds what a change of the option `modules` means. */
import type { ModulePermissions, PermissionChange } from "../types.ts";
import { permissionWords } from "./set.ts";
import { type ModuleSettings, settingsOf } from "./settings.ts";

/** A field that differs, with its values as they are read. */
export interface SettingChange {
  readonly module: string;
  /** Such as "run", "audit"; "grant" if there was none before, or is none any longer. */
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}

/** Returns the names of the modules that either value has an entry for. */
function namesIn(...values: readonly unknown[]): string[] {
  return [...new Set(values.flatMap((value) => Object.keys((value ?? {}) as object)))].sort();
}

/** Returns the differing fields, except for single permissions. */
export function settingChanges(previous: unknown, next: unknown): SettingChange[] {
  return namesIn(previous, next).flatMap((module) => {
    const from = fieldsOf(settingsOf(previous, module));
    const to = fieldsOf(settingsOf(next, module));
    return [...new Set([...from.keys(), ...to.keys()])]
      .filter((field) => from.get(field) !== to.get(field))
      .map((field) => ({ module, field, from: from.get(field), to: to.get(field) }));
  });
}

function fieldsOf({ run, grant, limits, audit, namespaces, spare }: ModuleSettings): Map<string, unknown> {
  return new Map<string, unknown>([
    ["run", run],
    ["grant", grant === undefined ? undefined : "set"],
    ...Object.entries(limits ?? {}).map(([name, value]) => [`limits.${name}`, value] as const),
    ["audit", audit],
    ["namespaces", namespaces],
    ["spare", spare],
  ]);
}

/** Returns the permissions that a change adds and removes, in words, by module. */
export function permissionChanges(previous: unknown, next: unknown): PermissionChange[] {
  return namesIn(previous, next).flatMap((module) => {
    const before = words(settingsOf(previous, module).grant);
    const after = words(settingsOf(next, module).grant);
    const added = [...after].filter((text) => !before.has(text));
    const removed = [...before].filter((text) => !after.has(text));
    return added.length + removed.length === 0 ? [] : [{ module, added, removed }];
  });
}

const words = (grant: ModulePermissions = {}): Set<string> => new Set(permissionWords(grant));
