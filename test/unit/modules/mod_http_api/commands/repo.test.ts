import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createNode, type Node } from "modhost/node";
import { CID } from "multiformats/cid";
import { commands } from "#modules/mod_http_api/commands/repo.ts";
import type { AnyCall } from "#modules/mod_http_api/rpc/command.ts";
import { levels } from "#modules/mod_http_api/rpc/levels.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import type { BlockStore } from "#node/storage/blockstore/store.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { sample } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";

async function nodeOn(t: TestContext, blocks: BlockStore): Promise<Node> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-gc-"));
  const node = await createNode({ repo: folder, stores: async () => ({ blocks, metadata: memoryMetadata() }) });
  t.after(async () => {
    await node.close();
    await rm(folder, { recursive: true });
  });
  return node;
}

/** Returns the values of a command, and its final error message. */
async function run(command: "repo/gc" | "repo/verify", node: Node, options: Record<string, unknown> = {}) {
  const level = levels["0.9"].traits;
  const call = { node, options, level, signal: new AbortController().signal } as unknown as AnyCall;
  const values: unknown[] = [];
  try {
    for await (const value of commands[command].run(call) as AsyncIterable<unknown>) values.push(value);
  } catch (error) {
    return { values, failed: (error as Error).message };
  }
  return { values, failed: undefined };
}

test("an incomplete pin stops a collection before anything is removed", async (t) => {
  const blocks = memoryBlocks();
  const node = await nodeOn(t, blocks);
  const loose = sample(1);
  const gone = CID.parse("QmSHrkRDARDPZwd8c49b4YKQDtv1GoaS41KnaTgqkdVQwa");
  await blocks.put([loose]);
  await node.lowLevel.pins.keep([gone]);
  const first = `could not retrieve links for ${gone}: merkledag: not found`;
  const second = "garbage collection aborted: could not retrieve some links";
  assert.deepEqual(await run("repo/gc", node), { values: [], failed: `${first}; ${second}` });
  assert.deepEqual(await run("repo/gc", node, { "stream-errors": true }), {
    values: [
      { Key: null, Error: first },
      { Key: null, Error: second },
    ],
    failed: "encountered errors during gc run",
  });
  assert.equal(await blocks.has(loose.cid), true);
  await node.lowLevel.pins.remove(gone, true);
  const { values, failed } = await run("repo/gc", node);
  assert.deepEqual(
    [JSON.stringify(values), failed],
    [JSON.stringify([{ Key: { "/": loose.cid.toString() } }]), undefined],
  );
});

test("a collection has exclusive access to the node, and waits for adds", async (t) => {
  const node = await nodeOn(t, memoryBlocks());
  const release = await node.lowLevel.lock.acquireShared();
  let over = false;
  const collecting = run("repo/gc", node).then(() => {
    over = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(over, false);
  release();
  await collecting;
});

test("verification names damaged blocks and continues", async (t) => {
  const blocks = memoryBlocks();
  const bad = sample(2);
  const unreadable = sample(3);
  const check = blocks.check.bind(blocks);
  blocks.check = async (cid) => {
    if (cid.equals(bad.cid)) return false;
    if (cid.equals(unreadable.cid)) throw new Error("input/output error");
    return check(cid);
  };
  const node = await nodeOn(t, blocks);
  await blocks.put([sample(1), bad, unreadable]);
  const { values, failed } = await run("repo/verify", node);
  assert.equal(failed, "verify complete, some blocks were corrupt");
  const messages = (values as { Msg: string; Progress: number }[]).filter(({ Msg }) => Msg !== "");
  assert.deepEqual(
    messages.map(({ Msg }) => Msg).sort(),
    [
      `block ${bad.cid} was corrupt (block in storage has different hash than requested)`,
      `block ${unreadable.cid} was corrupt (input/output error)`,
    ].sort(),
  );
  assert.deepEqual(values.filter((value) => (value as { Progress: number }).Progress > 0).at(-1), {
    Msg: "",
    Progress: (await blocks.stat()).blocks,
  });
});
