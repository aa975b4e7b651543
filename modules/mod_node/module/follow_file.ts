/** Follows the node's config file, and reports changes that do not apply yet to the operator. */
import { type ConfigApplied, type LowLevelNode, watchConfig } from "modhost/node";
import type { Change, Module } from "../../../core/types.ts";

/**
 * Applies changes in the file as they happen and at `modhost reload`, and reports which of them
 * apply.
 */
export function followFile(module: Module, { repo: { config } }: Pick<LowLevelNode, "repo">): void {
  let reported = "";
  const report = ({ applied, waiting }: Pick<ConfigApplied, "applied" | "waiting">) => {
    if (applied.length > 0) module.log.info("Applied changes of %s: %s", config.path, applied.join(", "));
    const sentence = waiting
      .map(({ key, reason }) => (reason === undefined ? `${key} waits for the next start` : `${key}: ${reason}`))
      .join("; ");
    if (sentence === reported) return;
    reported = sentence;
    if (sentence !== "") module.set_status("warn", `Changes of ${config.path} that do not apply yet: ${sentence}`);
    else module.set_status("info", "The whole configuration is in force");
  };
  report({ applied: [], waiting: config.waiting });
  module.on_release("the listener of the config", config.listen(report));
  module.on_release(
    "the watch of the config",
    watchConfig(config, (sentence) => module.log.warn("%s", sentence)),
  );
  // Reads the node's configuration again after each change of the server's configuration, however
  // that was applied.
  module.hook("server-changed", ({ plan }: Change) => {
    if (plan === undefined) return;
    config.reread().catch((error: Error) => {
      module.log.warn("Cannot read %s, so the previous settings stay in force: %s", config.path, error.message);
    });
  });
}
