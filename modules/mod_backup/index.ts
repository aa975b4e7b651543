/** Backs up the running host: its data folder, its configuration, and the data of modules. */
import type { Module } from "../../core/types.ts";
import { Backups } from "./backups.ts";
import { operationsOf } from "./operations.ts";
import { options } from "./options.ts";
import { shapes } from "./shapes.ts";
import type { BackupModule } from "./types.ts";

export { options };
/** One instance backs up the whole server. */
export const global = true;
export const shared = true;

export default function load(module: Module<typeof options>): BackupModule {
  const backups = new Backups(module);
  module.handle_items(
    "backup-provider",
    (item) => backups.add(item),
    (item) => backups.remove(item),
  );
  module.provides("metrics", backups.metrics);
  module.provides("admin", {
    operations: operationsOf(backups),
    topics: { backup_state: backups.topic },
    shapes,
  });
  // All options are read when a backup begins, so a change needs no work here.
  module.changed = () => undefined;
  module.unload = () => backups.cancel();
  return backups;
}
