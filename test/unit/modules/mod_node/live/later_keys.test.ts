/** Keys of Kubo for settings that version 0.9 has under other names apply at once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryNode } from "../api/support.ts";

test("keys of Kubo are set by its names, and count for what they stand for", async (t) => {
  const node = await memoryNode(t);
  const { config } = node.lowLevel.repo;
  await node.config.set("Provide.Enabled", false);
  assert.equal(config.value("Experimental.StrategicProviding"), true);
  await node.config.set("Provide.Strategy", "pinned");
  assert.equal(config.value("Reprovider.Strategy"), "pinned");
  await node.config.set("Provide.DHT.Interval", "0");
  assert.equal(config.value("Reprovider.Interval"), "0");
  await node.config.set("Provide.DHT.Interval", "90m");
  assert.equal(await node.config.get("Provide.DHT.Interval"), "90m");
  assert.equal(config.value("Reprovider.Interval"), "1h30m0s");
  await assert.rejects(node.config.set("Provide.DHT.Interval", "odd"), /time: invalid duration "odd"/);
});

test("the word auto is taken into the bootstrap list unless AutoConf.Enabled is false", async (t) => {
  const node = await memoryNode(t);
  await node.config.set("AutoConf.Enabled", false);
  await assert.rejects(node.bootstrap.add("auto"), /AutoConf is disabled/);
  await node.config.set("AutoConf.Enabled", null);
  await node.bootstrap.add("auto");
  assert.deepEqual((await node.bootstrap.written())[0], "auto");
  assert.ok((await node.bootstrap.list()).Peers.length > 3);
});
