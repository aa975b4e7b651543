/** `modhost`: the host, and what a module author may import. */
import type { ModuleDefinition, OptionDeclarations } from "./types.ts";

export { Config, configFrom, type LoadConfigOptions, loadConfig } from "./config/index.ts";
export { createHost, type Host, type HostOptions, type HostPhase } from "./host.ts";
export { html, json, redirect, text } from "./http/replies.ts";
export type { InlineModule } from "./inline_modules.ts";
export { metricFaults } from "./metrics/faults.ts";
export { createFigures } from "./metrics/figures.ts";
export type { Clock } from "./module/clock.ts";
export { defineChange, defineOperation } from "./operations/admin_operation.ts";
export type * from "./types.ts";
export { type ErrorCode, errorTable, HttpError, invalidOption, ModhostError, reasonOf } from "./util/errors.ts";
export type { LogSettings, LogStream } from "./util/log.ts";
export { packageVersion } from "./util/package.ts";
export { makePrivateFolder } from "./util/private_folder.ts";
export { writeFileAtomic } from "./util/write_file_atomic.ts";

/** Gives a config file its types: `export default defineConfig({ ... })`. */
export function defineConfig<C extends ConfigExport>(config: C): C {
  return config;
}

type Options = Record<string, unknown>;
/** What a config file may export. */
export type ConfigExport = Options | Promise<Options> | (() => Options | Promise<Options>);

/**
 * Gives a module file its types: `export default defineModule({ options, load(module) { ... } })`. The getters of
 * `module` know the declared options then, and no others.
 */
export function defineModule<const D extends OptionDeclarations = OptionDeclarations>(
  definition: ModuleDefinition<D>,
): ModuleDefinition<D> {
  return definition;
}
