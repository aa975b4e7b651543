/** Collects garbage automatically when the repo is nearly full (option `node_gc`). */

import { counted, type LowLevelNode, parseDuration } from "modhost/node";
import type { Module, Timer } from "../../../core/types.ts";

/**
 * Collects garbage every `Datastore.GCPeriod` if the repo is above its watermark. A change of the
 * period applies at once.
 */
export function collectPeriodically(module: Module, node: LowLevelNode): void {
  const { config } = node.repo;
  const leaving = new AbortController();
  module.on_release("the collection of garbage", () => leaving.abort());
  let timer: Timer | undefined;
  let period = 0;
  const plan = () => {
    // The period is parsed first, so that an invalid one leaves the previous timer.
    period = parseDuration(config.value("Datastore.GCPeriod")) / 1000;
    timer?.stop();
    timer = period > 0 ? module.add_timer(period, run) : undefined;
  };
  const run = async () => {
    const own = timer;
    try {
      await collect(module, node, leaving.signal);
    } catch (error) {
      if (!leaving.signal.aborted) module.log.error("Cannot collect garbage: %s", (error as Error).message);
    }
    // Another timer was set meanwhile.
    return leaving.signal.aborted || timer !== own ? undefined : period;
  };
  plan();
  module.on_release("the period of collections", config.follow(["Datastore.GCPeriod"], plan));
}

async function collect(module: Module, node: LowLevelNode, signal: AbortSignal): Promise<void> {
  if (!(await node.isNearlyFull())) return;
  module.log.info("Collecting garbage, because the repo is nearly full");
  let removed = 0;
  for await (const result of node.collect(signal)) {
    if ("removed" in result) removed += 1;
    else module.log.warn("Garbage collection: %s", result.error);
  }
  const { bytes } = await node.stat();
  module.log.info("Garbage collection removed %s; the repo now has %d bytes", counted(removed, "block"), bytes);
}
