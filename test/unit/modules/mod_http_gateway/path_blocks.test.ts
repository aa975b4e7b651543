import assert from "node:assert/strict";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { PathBlocks } from "#modules/mod_http_gateway/path_blocks.ts";
import { multihash, sha256 } from "#node/formats/cid/hashes.ts";
import type { NodeModule, ReadBlock } from "#node/index.ts";

const DAG_PB = 0x70;
const node = { lowLevel: { blocks: { has: async () => true, store: {} } } } as unknown as NodeModule;

const readerOf = (of: NodeModule, read: ReadBlock) => new PathBlocks(of).reader({ read, readLeaf: read });

for (const [which, length] of Object.entries({ small: 1000, large: 2_000_000 })) {
  test(`concurrent and later readers of a ${which} block get the same bytes`, async () => {
    const cid = CID.createV1(DAG_PB, await multihash(sha256, Buffer.from(which)));
    let reads = 0;
    const read = readerOf(node, async () => {
      reads += 1;
      return new Uint8Array(length);
    });
    const [first, ...others] = await Promise.all([read(cid), read(cid), read(cid)]);
    for (const other of [...others, await read(cid)]) assert.equal(other, first);
    assert.equal(reads, 3);
  });
}

test("a cached block is served without a check until something is removed from the store, and not after its own removal", async () => {
  const cid = CID.createV1(DAG_PB, await multihash(sha256, Buffer.from("directory")));
  const store = { removals: 0, has: async () => isHere };
  let isHere = true;
  let checks = 0;
  const has = async () => {
    checks += 1;
    return isHere;
  };
  const reader = readerOf({ lowLevel: { blocks: { has, store } } } as unknown as NodeModule, async () => {
    if (!isHere) throw new Error("gone");
    return new Uint8Array(10);
  });
  const soon = () => reader.soon?.(cid);
  const first = await soon();
  assert.equal(await soon(), first);
  assert.equal(soon(), first, "no promise");
  assert.equal(checks, 1);
  store.removals += 1;
  assert.equal(await soon(), first, "something else was removed");
  assert.equal(checks, 2);
  isHere = false;
  store.removals += 1;
  await assert.rejects(async () => soon(), { message: "gone" });
});

test("blocks that are not in the store are checked each time", async () => {
  const cid = CID.createV1(DAG_PB, await multihash(sha256, Buffer.from("of MFS")));
  const store = { removals: 0, has: async () => false };
  const blocks = { has: async () => true, store };
  const reader = readerOf({ lowLevel: { blocks } } as unknown as NodeModule, async () => new Uint8Array(10));
  for (let times = 0; times < 3; times += 1) {
    const coming = reader.soon?.(cid);
    assert.ok(coming instanceof Promise);
    await coming;
  }
});
