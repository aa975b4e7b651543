import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, PinLsOptions } from "modhost/node";
import { CID } from "multiformats/cid";
import { memoryNode } from "./support.ts";

async function listed(node: Node, options: PinLsOptions): Promise<Record<string, string>> {
  const pins = await Array.fromAsync(node.pin.ls({ type: "recursive", ...options }));
  return Object.fromEntries(pins.map(({ cid, name = "" }) => [String(cid), name]));
}

test("pins are renamed and listed with their names, and unpinned objects have none", async (t) => {
  const node = await memoryNode(t);
  const { pins } = node.lowLevel;
  const { cid } = await node.add("named", { pinName: "one" });
  const loose = (await node.add("loose", { pin: false })).cid;
  await pins.rename(cid, "other");
  await pins.rename(loose, "none");
  assert.deepEqual(await Array.fromAsync(pins.names()), [[String(cid), "other"]]);
  await pins.rename(cid, "");
  assert.deepEqual(await Array.fromAsync(pins.names()), []);
  await assert.rejects(pins.rename(cid, "n".repeat(256)), { message: "pin name is 256 bytes (max 255 bytes)" });
});

test("the last name of a pin counts, moves with an update, and is removed with the pin", async (t) => {
  const node = await memoryNode(t);
  const add = async (content: string, pinName?: string) => String((await node.add(content, { pinName })).cid);
  const one = await add("1", "first");
  const two = await add("2");
  const all = await listed(node, { names: true });
  assert.deepEqual([all[one], all[two]], ["first", ""]);
  assert.deepEqual(await listed(node, { name: "irs" }), { [one]: "first" });
  assert.equal((await listed(node, {}))[one], "");
  await node.pin.add(two, { name: "second" });
  assert.deepEqual(await listed(node, { name: "second" }), { [two]: "second" });
  await node.pin.rm(two);
  await node.pin.update(one, two);
  assert.deepEqual(await listed(node, { name: "first" }), { [two]: "first" });
  await node.lowLevel.pins.add(CID.parse(two), "recursive", { owner: "somebody" });
  assert.deepEqual(await listed(node, { name: "first" }), { [two]: "first" });
  await add("2");
  assert.deepEqual(await listed(node, { name: "first" }), {});
  await node.pin.add(two, { name: "again" });
  await node.pin.rm(two);
  await node.pin.add(two);
  assert.deepEqual(await listed(node, { name: "again" }), {});
});

test("a name has at most 255 bytes, and requires a pin", async (t) => {
  const node = await memoryNode(t);
  await assert.rejects(node.add("1", { pinName: "ü".repeat(128) }), /pin name is 256 bytes \(max 255 bytes\)/);
  await assert.rejects(node.add("1", { pinName: "x", pin: false }), /pin-name option requires pin to be set/);
  const { cid } = await node.add("1");
  await assert.rejects(node.pin.add(cid, { name: "x".repeat(256) }), /max 255 bytes/);
});
