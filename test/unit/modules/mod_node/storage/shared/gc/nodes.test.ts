/** Garbage collection as users of two nodes on one store see it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "modhost/node";
import type { CID } from "multiformats/cid";
import { packed } from "#test/support/tar.ts";
import { HostGroup, shutOut } from "./host_group.ts";

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const has = async (node: Node, cid: CID) => (await node.lowLevel.blocks.find(cid)) !== undefined;

test("repo/gc of one host respects pins, files and running calls of all hosts", async (t) => {
  const group = new HostGroup();
  const a = await group.node(t);
  const b = await group.node(t);
  const pinned = await b.add("pinned by the other");
  const loose = await b.add("kept by nobody", { pin: false });
  await b.files.write("/kept", bytes("in the files of the other"), { create: true });
  const file = await b.files.stat("/kept");
  const removed: string[] = [];
  for await (const result of a.repo.gc()) removed.push(String(result.cid ?? result.err));
  assert.ok(removed.includes(String(loose.cid)), removed.join());
  for (const node of [a, b]) {
    assert.ok(await has(node, pinned.cid));
    assert.ok(await has(node, file.cid));
    assert.equal(await has(node, loose.cid), false);
  }
  const again: unknown[] = [];
  for await (const result of b.repo.gc()) again.push(result);
  assert.deepEqual(again, []);
});

test("a block that is removed on one host is gone on every host, unless it is pinned", async (t) => {
  const group = new HostGroup();
  const a = await group.node(t);
  const b = await group.node(t);
  const loose = await b.add("kept by nobody", { pin: false });
  const pinned = await b.add("pinned");
  const results = await Array.fromAsync(a.block.rm([loose.cid, pinned.cid]));
  assert.deepEqual(
    results.map(({ error }) => error?.message),
    [undefined, "pinned: recursive"],
  );
  assert.equal(await has(b, loose.cid), false);
  assert.ok(await has(b, pinned.cid));
});

test("a call that outlives its session retains nothing: its blocks may be gone, and it can be repeated", async (t) => {
  const group = new HostGroup();
  const node = await group.node(t);
  const calls: ((body: AsyncIterable<Uint8Array>) => Promise<unknown>)[] = [
    (body) => node.files.write("/slow", body, { create: true }),
    (body) => node.add(body),
    (body) => node.tar.add(body),
  ];
  for (const call of calls) {
    const begun = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    const outcome = call(slowly(begun, ended.promise)).then(
      () => "done",
      ({ code, kind }) => `${code} ${kind}`,
    );
    await begun.promise;
    await shutOut(group, node.lowLevel).rejoined();
    ended.resolve();
    assert.equal(await outcome, "SESSION_LOST unavailable");
  }
  await node.files.write("/slow", bytes("again"), { create: true });
});

/** A tar archive with one file, half of which arrives late. */
async function* slowly(begun: PromiseWithResolvers<void>, rest: Promise<void>): AsyncGenerator<Uint8Array> {
  const archive = await packed([{ name: "file", body: "content" }]);
  yield archive.subarray(0, archive.length / 2);
  begun.resolve();
  await rest;
  yield archive.subarray(archive.length / 2);
}

test("content whose objects were lost can be read after it is added, put or written again, even while it is pinned", async (t) => {
  const group = new HostGroup();
  const a = await group.node(t);
  const b = await group.node(t);
  const content = bytes("the same on all hosts ".repeat(50));
  const { cid } = await a.add(content, { rawLeaves: true, cidVersion: 1 });
  const lose = () => {
    for (const key of [...group.contents.keys()]) if (key.endsWith(".car")) group.contents.delete(key);
  };
  const again: Readonly<Record<string, (node: Node) => Promise<unknown>>> = {
    add: (node) => node.add(content, { rawLeaves: true, cidVersion: 1, pin: false }),
    "block/put": (node) => node.block.put(content, { format: "raw", version: 1 }),
    "files/write": async (node) => {
      await node.files.write("/again", content, { create: true, truncate: true, rawLeaves: true, cidVersion: 1 });
      await node.files.flush("/again");
    },
  };
  for (const [what, repeat] of Object.entries(again)) {
    lose();
    const fresh = await group.node(t);
    await assert.rejects(fresh.lowLevel.blocks.find(cid), /add the same content again/, what);
    await repeat(b);
    assert.deepEqual(await fresh.lowLevel.blocks.find(cid), content, what);
  }
});
