/** Installs modules of others from packages while the host runs. */
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { packageVersion } from "../../core/index.ts";
import type { Module } from "../../core/types.ts";
import { options } from "./options.ts";
import { defaultLimits, type PackageSettings, type PermissionRules } from "./settings.ts";

export { options };
/** One instance installs packages for the whole server. */
export const global = true;
export const shared = true;

export interface PackagesModule {
  /** Returns the settings that the configuration has now. */
  settings(permissions: PermissionRules): PackageSettings;
  /** Loads the engine, which is large and rarely needed. */
  engine(): Promise<typeof import("./engine.ts")>;
}

const LOCK_FILE = "modules.lock";

/** Names of the modules that come with modhost, whose folders are next to this one. */
const bundledNames = () =>
  readdirSync(new URL("../", import.meta.url)).flatMap((name) => (name.startsWith("mod_") ? [name.slice(4)] : []));

export default function load(module: Module<typeof options>): PackagesModule {
  // All options are read when an operation begins, so a change needs no work here.
  module.changed = () => undefined;
  return {
    settings(permissions) {
      const { config, data_path: data } = module.server.status();
      const folder = config === undefined ? process.cwd() : dirname(config);
      return {
        lockFile: join(folder, LOCK_FILE),
        store: module.get_option_path("packages_path") ?? join(data, "packages"),
        folder,
        env: process.env,
        minimumReleaseAge: module.get_option_period("packages_minimum_release_age"),
        verifyProvenance: module.get_option_boolean("packages_verify_provenance"),
        exceptions: {
          releaseAge: module.get_option_array("packages_release_age_exceptions"),
          scripts: module.get_option_array("packages_allow_scripts"),
          deprecated: module.get_option_array("packages_allow_deprecated"),
        },
        limits: defaultLimits,
        reserved: bundledNames(),
        host: packageVersion(),
        node: process.version,
        now: Date.now,
        permissions,
      };
    },
    engine: () => import("./engine.ts"),
  };
}
