/** `modhost`: the host, and what a module author may import. */
import type { ModuleDefinition } from "./types.ts";

export { Config, configFrom, type LoadConfigOptions, loadConfig } from "./config/index.ts";
export { type ErrorCode, errorTable, HttpError, ModhostError, reasonOf } from "./errors.ts";
export { createHost, type GivenModule, type Host, type HostOptions, type HostPhase } from "./host.ts";
export type { LogSettings, LogStream } from "./log.ts";
export type * from "./types.ts";

/** Gives a config file its types: `export default defineConfig({ ... })`. */
export function defineConfig<C extends ConfigExport>(config: C): C {
  return config;
}

type Options = Record<string, unknown>;
/** What a config file may export. */
export type ConfigExport = Options | Promise<Options> | (() => Options | Promise<Options>);

/** Gives a module file its types: `export default defineModule({ load(module) { ... } })`. */
export function defineModule<D extends ModuleDefinition>(definition: D): D {
  return definition;
}
