/**
 * Reads the rights that the configuration grants to a sandboxed module:
 * `modules: { NAME: { grant: {...} } }`.
 */
import type { Config } from "../config/index.ts";
import { moduleName } from "../module/locate.ts";

export interface ModuleRights {
  readonly read: readonly string[];
  readonly write: readonly string[];
  readonly env: readonly string[];
  /** Options beyond its own. */
  readonly options: readonly string[];
  /** Modules that it may call: the paths of functions, or true for all. */
  readonly call: Readonly<Record<string, true | readonly string[]>>;
  readonly run: readonly string[];
  readonly addons: boolean;
  readonly namespaces: "auto" | "required" | "off";
}

export function rightsOf(config: Config, name: string): ModuleRights {
  const modules = table(config.value("modules"));
  const [, entry] = Object.entries(modules).find(([key]) => moduleName(key) === name) ?? [];
  const { grant, namespaces } = table(entry);
  const { read, write, env, options, call, run, addons } = table(grant);
  const calls = Object.entries(table(call)).map(([module, paths]) => [
    moduleName(module),
    paths === true ? true : texts(paths),
  ]);
  return {
    read: texts(read),
    write: texts(write),
    env: texts(env),
    options: texts(options),
    call: Object.fromEntries(calls),
    run: texts(run),
    addons: addons === true,
    namespaces: namespaces === "required" || namespaces === "off" ? namespaces : "auto",
  };
}

function table(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];
