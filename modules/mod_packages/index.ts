/** Installs modules of others from packages while the host runs. */
import { dirname } from "node:path";
import type { Module } from "../../core/types.ts";
import { operationsOf } from "./operations.ts";
import { options } from "./options.ts";
import { Packages } from "./packages.ts";
import { settingsOf } from "./settings.ts";
import { shapes } from "./shapes.ts";

export { options };
/** One instance installs packages for the whole server. */
export const global = true;
export const shared = true;

export default function load(module: Module<typeof options>): Packages {
  // All options are read when an operation begins, so a change needs no work here.
  module.changed = () => undefined;
  const packages = new Packages(() => {
    const { config, data_path: dataPath } = module.server.status();
    const folder = config === undefined ? process.cwd() : dirname(config);
    return settingsOf({ folder, dataPath }, (option) => module.get_option(option));
  });
  module.provides("admin", { operations: operationsOf(packages), shapes });
  return packages;
}
