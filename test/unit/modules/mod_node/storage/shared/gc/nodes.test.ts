/** Garbage collection as users of two nodes on one store see it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "modhost/node";
import type { CID } from "multiformats/cid";
import { packed } from "#test/support/tar.ts";
import { Place, shutOut } from "./place.ts";

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const has = async (node: Node, cid: CID) => (await node.lowLevel.blocks.find(cid)) !== undefined;

test("repo/gc of one host removes what none of them keeps: pins, files and calls under way of all count", async (t) => {
  const place = new Place();
  const [a, b] = [await place.node(t), await place.node(t)];
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
  const place = new Place();
  const [a, b] = [await place.node(t), await place.node(t)];
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

test("a call that outlives its host's session keeps nothing: what it stored may be gone, and it can be repeated", async (t) => {
  const place = new Place();
  const node = await place.node(t);
  const calls: ((body: AsyncIterable<Uint8Array>) => Promise<unknown>)[] = [
    (body) => node.files.write("/slow", body, { create: true }),
    (body) => node.add(body),
    (body) => node.tar.add(body),
  ];
  for (const call of calls) {
    const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const outcome = call(slowly(begun, ended.promise)).then(
      () => "done",
      ({ code, kind }) => `${code} ${kind}`,
    );
    await begun.promise;
    await shutOut(place, node.lowLevel).rejoined();
    ended.resolve();
    assert.equal(await outcome, "SESSION_LOST unavailable");
  }
  await node.files.write("/slow", bytes("again"), { create: true });
});

/** A tar archive of one file, of which half comes late. */
async function* slowly(begun: PromiseWithResolvers<void>, rest: Promise<void>): AsyncGenerator<Uint8Array> {
  const archive = await packed([{ name: "file", body: "content" }]);
  yield archive.subarray(0, archive.length / 2);
  begun.resolve();
  await rest;
  yield archive.subarray(archive.length / 2);
}
