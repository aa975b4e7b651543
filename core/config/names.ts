/** Finds names in a configuration that have no meaning and would otherwise be ignored silently. */
import type { OptionDeclaration } from "../types.ts";
import { nearest } from "../util/nearest.ts";
import { isObject, type Problem, SET } from "./convert.ts";
import { repeatedName } from "./json_names.ts";

export interface UnknownName {
  readonly path: string;
  readonly nearest: string | undefined;
}

export function unknownMessage({ path, nearest }: UnknownName): string {
  return `Nothing reads the option ${path}${nearest === undefined ? "" : `: is ${nearest} meant?`}`;
}

/** Returns the same text for spellings that differ only in case or in dashes and underscores. */
export const sameSpelling = (name: string): string => name.toLowerCase().replaceAll("-", "_");

/** Returns the known name that differs only in case or dashes, else the nearest one. */
export function nearestSpelling(name: string, known: ReadonlySet<string>): string | undefined {
  return [...known].find((one) => sameSpelling(one) === sameSpelling(name)) ?? nearest(name, known);
}

/**
 * Maximum number of edits between a misspelt name and the option that is meant. A name further away
 * may be an option of a module that is not loaded.
 */
const MAX_MISSPELT = 2;

/** Returns true if a normalized name equals another one, or nearly so. */
export const isNear = (spelt: string, name: string): boolean => nearest(spelt, [name], MAX_MISSPELT) !== undefined;

/**
 * Returns true if an option protects apps of other modules, which are unprotected without its
 * module.
 */
export const protectsApps = ({ keys, protects }: OptionDeclaration): boolean => keys === "apps" && protects === true;

/**
 * Returns the end of the sentence "x is y, but ..." for the misspelt name of a protecting option,
 * and for one whose `module` is not loaded.
 */
export function lostProtection(nearest: string | undefined, module: string | undefined): string {
  if (nearest === undefined) {
    return `the module ${module} is not loaded, and the apps would be unguarded: add it to modules_enabled, or list it in modules_disabled if that is meant`;
  }
  return `no option has this name: write ${nearest}, without which the server would run unprotected, or begin the name with $ so that it is ignored`;
}

/**
 * Returns which apps become unprotected when a module is unloaded; undefined if it protected none.
 */
export function openAppsText(module: string, apps: readonly string[]): string | undefined {
  if (apps.length === 0) return undefined;
  const named = apps.filter((app) => app !== "*");
  const all = named.length === 0 ? "all apps" : `all apps, among them ${named.join(", ")},`;
  const open = apps.includes("*") ? `${all} are` : `${named.join(", ")} ${named.length === 1 ? "is" : "are"}`;
  return `Without the module ${module} ${open} unguarded, until it is loaded again`;
}

/** Names that no value may have at any depth, each with the remedy for the message. */
const impossible: Readonly<Record<string, string>> = {
  "<<": "only YAML merges, by << without quotes: elsewhere repeat the entries, or spread them in a script",
  ["__proto__"]: "nothing can have this name",
};

/** Yields problems of names. It checks each value once, however many aliases refer to it. */
export function* impossibleNames(value: unknown, path = "", seen = new Set<unknown>()): Generator<Problem> {
  if ((!Array.isArray(value) && !isObject(value)) || seen.has(value)) return;
  seen.add(value);
  for (const [name, inner] of Object.entries(value)) {
    if (Array.isArray(value) && typeof inner !== "object") continue;
    const at = Array.isArray(value) ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
    const allowed = Array.isArray(value) || !Object.hasOwn(impossible, name) ? undefined : impossible[name];
    if (allowed !== undefined) yield { path: at, value: SET, allowed };
    else yield* impossibleNames(inner, at, seen);
  }
}

/** Yields the problems of names in a variable whose value is JSON. */
export function* variableFaults(path: string, text: string): Generator<Problem> {
  const value = parsed(text);
  if (!isObject(value)) return;
  if (repeatedName(text) !== undefined) yield { path, value: SET, allowed: "one of its names occurs twice" };
  yield* impossibleNames(value, path);
}

/** Returns undefined for text that is not JSON, as most values are. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
