/** The public API of `modhost`: the host, and what a module author may import. */
import type { ModuleDefinition, OptionDeclarations } from "./types.ts";

export { Config, configFrom, type LoadConfigOptions, loadConfig } from "./config/index.ts";
export { createHost, type Host, type HostOptions, type HostPhase } from "./host.ts";
export { html, json, redirect, text } from "./http/message/replies.ts";
export type { InlineModule } from "./inline_modules.ts";
export { createMetrics } from "./metrics/counted_metrics.ts";
export { metricFaults } from "./metrics/faults.ts";
export type { Clock } from "./module/clock.ts";
export { permissionFault } from "./module/declared.ts";
export { defineChange, defineOperation } from "./operations/admin_operation.ts";
export { permissionWords } from "./permissions/index.ts";
export type * from "./types.ts";
export { type ErrorCode, errorTable, HttpError, invalidOption, ModhostError, reasonOf } from "./util/errors.ts";
export type { LogSettings, LogStream } from "./util/log.ts";
export { packageVersion } from "./util/package.ts";
export { makePrivateFolder } from "./util/private_folder.ts";
export { actAs } from "./util/usage.ts";
export { writeFileAtomic } from "./util/write_file_atomic.ts";

/** Returns the config unchanged, with its types: `export default defineConfig({ ... })`. */
export function defineConfig<C extends ConfigExport>(config: C): C {
  return config;
}

type Options = Record<string, unknown>;
/** The values that a config file may export. */
export type ConfigExport = Options | Promise<Options> | (() => Options | Promise<Options>);

/**
 * Returns the module definition unchanged, with its types:
 * `export default defineModule({ options, load(module) { ... } })`. The getters of `module` then
 * accept the declared options and no others.
 */
export function defineModule<const D extends OptionDeclarations = OptionDeclarations>(
  definition: ModuleDefinition<D>,
): ModuleDefinition<D> {
  return definition;
}
