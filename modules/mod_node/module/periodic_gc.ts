/** Automatic garbage collection when the repo is nearly full (option `node_gc`). */

import { counted, type LowLevelNode, parseDuration } from "modhost/node";
import type { Module, Timer } from "../../../core/types.ts";

/**
 * Every `Datastore.GCPeriod`, as it is then, collects garbage if the repo is above its watermark.
 */
export function collectPeriodically(module: Module, node: LowLevelNode): void {
  const { config } = node.repo;
  const leaving = new AbortController();
  module.on_release("the collection of garbage", () => leaving.abort());
  let timer: Timer | undefined;
  let period = 0;
  const plan = () => {
    // Before anything is changed: an invalid period leaves the former one.
    period = parseDuration(config.value("Datastore.GCPeriod")) / 1000;
    timer?.stop();
    timer = period > 0 ? module.add_timer(period, run) : undefined;
  };
  const run = async () => {
    const own = timer;
    try {
      await collect(module, node, leaving.signal);
    } catch (error) {
      if (!leaving.signal.aborted) module.log.error("The collection of garbage failed: %s", (error as Error).message);
    }
    // Another timer has been set meanwhile.
    return leaving.signal.aborted || timer !== own ? undefined : period;
  };
  plan();
  module.on_release("the period of collections", config.follow(["Datastore.GCPeriod"], plan));
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
  module.log.info("Collected %s; the repo has %d bytes now", counted(removed, "block"), bytes);
}
