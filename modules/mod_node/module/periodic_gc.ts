/** Automatic garbage collection when the repo is nearly full (option `node_gc`). */
import { type LowLevelNode, parseDuration } from "modhost/node";
import type { Module } from "../../../core/types.ts";

/** Every `Datastore.GCPeriod`, collects garbage if the repo is above its watermark. */
export function collectPeriodically(module: Module, node: LowLevelNode): void {
  const period = parseDuration(node.repo.config.value("Datastore.GCPeriod")) / 1000;
  if (!(period > 0)) return;
  const leaving = new AbortController();
  module.on_release("the collection of garbage", () => leaving.abort());
  module.add_timer(period, async () => {
    try {
      await collect(module, node, leaving.signal);
    } catch (error) {
      if (!leaving.signal.aborted) module.log.error("The collection of garbage failed: %s", (error as Error).message);
    }
    return leaving.signal.aborted ? undefined : period;
  });
}

async function collect(module: Module, node: LowLevelNode, signal: AbortSignal): Promise<void> {
  if (!(await node.isNearlyFull())) return;
  module.log.info("The repo is nearly full: collecting garbage");
  let removed = 0;
  for await (const result of node.collect(signal)) {
    if ("removed" in result) removed += 1;
    else module.log.warn("Collecting garbage: %s", result.error);
  }
  const { bytes } = await node.stat();
  module.log.info("Collected %d blocks; the repo has %d bytes now", removed, bytes);
}
