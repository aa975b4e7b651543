/** The node's config file is followed, and what of it waits is told to the operator. */
import { type ConfigApplied, type LowLevelNode, watchConfig } from "modhost/node";
import type { Change, Module } from "../../../core/types.ts";

/**
 * Puts in force what is written by hand, also by `modhost reload`, and tells what becomes of each
 * change.
 */
export function followFile(module: Module, { repo: { config } }: Pick<LowLevelNode, "repo">): void {
  let told = "";
  const tell = ({ applied, waiting }: Pick<ConfigApplied, "applied" | "waiting">) => {
    if (applied.length > 0) module.log.info("In force now: %s", applied.join(", "));
    const sentence = waiting
      .map(({ key, reason }) => (reason === undefined ? `${key} waits for the next start` : `${key}: ${reason}`))
      .join("; ");
    if (sentence === told) return;
    told = sentence;
    if (sentence !== "") module.set_status("warn", `In ${config.path} and not in force: ${sentence}`);
    else module.set_status("info", "All that is configured is in force");
  };
  tell({ applied: [], waiting: config.waiting });
  module.on_release("news of the config", config.listen(tell));
  module.on_release(
    "the watch of the config",
    watchConfig(config, (sentence) => module.log.warn("%s", sentence)),
  );
  // By whatever way the server's configuration was applied, the node's is looked at, too.
  module.hook("server-changed", ({ plan }: Change) => {
    if (plan === undefined) return;
    config.reread().catch((error: Error) => {
      module.log.warn("%s is not taken, what was in force stays so: %s", config.path, error.message);
    });
  });
}
