/** Backups of the host while it runs: its data folder, its configuration, and what modules keep. */
import type { Module } from "../../core/types.ts";
import { Backups } from "./backups.ts";
import { operationsOf } from "./operations.ts";
import { options } from "./options.ts";
import { shapes } from "./shapes.ts";
import type { BackupModule } from "./types.ts";

export { options };
/** It backs up the whole server. */
export const global = true;
export const shared = true;

export default function load(module: Module<typeof options>): BackupModule {
  const backups = new Backups(module);
  module.handle_items(
    "backup-provider",
    (item) => backups.add(item),
    (item) => backups.remove(item),
  );
  module.provides("metrics", backups.figures);
  module.provides("admin", {
    operations: operationsOf(backups),
    topics: { backup_state: backups.topic },
    shapes,
  });
  // All options are read when a backup begins.
  module.changed = () => undefined;
  module.unload = () => backups.cancel();
  return backups;
}
