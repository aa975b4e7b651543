import assert from "node:assert/strict";
import { test } from "node:test";
import { type Node, nodeMetrics } from "modhost/node";
import { metricFaults } from "#core/index.ts";
import { Remembered } from "#node/util/async/remembered.ts";
import { memoryNode } from "../api/support.ts";

async function samplesOf(node: Node): Promise<Record<string, unknown>> {
  const samples = await node.metrics.collect();
  const text = (labels: object = {}) => Object.values(labels).join();
  return Object.fromEntries(samples.map(({ name, labels, value }) => [`${name} ${text(labels)}`.trim(), value]));
}

test("the declarations are valid, and each metric is declared with its labels", async (t) => {
  assert.deepEqual(metricFaults(nodeMetrics), []);
  const node = await memoryNode(t);
  for (const { name, labels = {} } of await node.metrics.collect()) {
    const { labels: declared = [] } = { labels: [], ...nodeMetrics[name as keyof typeof nodeMetrics] };
    assert.deepEqual(Object.keys(labels), [...declared], name);
  }
});

test("adds, reads and garbage collections of a node are counted", async (t) => {
  const node = await memoryNode(t);
  const before = await samplesOf(node);
  assert.equal(before["ipfs_info 0.9.0,"], 1);
  assert.equal(before.modhost_node_online, 0);
  assert.equal(before["modhost_node_pins recursive"], 1, "the empty directory");
  const { cid } = await node.add("hello", { pin: false });
  await Array.fromAsync(node.cat(cid));
  await assert.rejects(Array.fromAsync(node.cat("bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy")));
  await Array.fromAsync(node.repo.gc());
  const after = await samplesOf(node);
  assert.equal(after.modhost_node_added_files_total, 1);
  assert.ok(Number(after.modhost_node_added_bytes_total) >= 5);
  assert.ok(Number(after["modhost_node_block_reads_total stored"]) >= 1);
  assert.equal(after["modhost_node_block_reads_total missing"], 1);
  assert.equal(after.modhost_node_gc_runs_total, 1);
  assert.equal(after.modhost_node_gc_removed_blocks_total, 1);
  assert.ok(Number(after.modhost_node_repo_limit_bytes) > 0);
});

test("expensive values are reused, and counted once at a time", async () => {
  let requests = 0;
  const gates: PromiseWithResolvers<number>[] = [];
  const slow = new Remembered(
    () => {
      requests += 1;
      const gate = Promise.withResolvers<number>();
      gates.push(gate);
      return gate.promise;
    },
    0,
    1,
  );
  assert.equal(await slow.value(), undefined);
  assert.equal(await slow.value(), undefined);
  assert.equal(requests, 1);
  gates[0]?.resolve(7);
  await gates[0]?.promise;
  assert.equal(await slow.value(), 7);
  assert.equal(await slow.value(), 7, "as it was, while it is asked for again");
  assert.ok(requests <= 2);
});
