import assert from "node:assert/strict";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { PathBlocks } from "#modules/mod_http_gateway/path_blocks.ts";
import { multihash, sha256 } from "#node/formats/cid/hashes.ts";
import type { NodeModule } from "#node/index.ts";

const DAG_PB = 0x70;
const node = { lowLevel: { blocks: { has: async () => true } } } as unknown as NodeModule;

for (const [which, length] of Object.entries({ small: 1000, large: 2_000_000 })) {
  test(`those who ask for a ${which} block at a time, and while it is used, get the same bytes`, async () => {
    const cid = CID.createV1(DAG_PB, await multihash(sha256, Buffer.from(which)));
    let reads = 0;
    const read = new PathBlocks(node).reader(async () => {
      reads += 1;
      return new Uint8Array(length);
    });
    const [first, ...others] = await Promise.all([read(cid), read(cid), read(cid)]);
    for (const other of [...others, await read(cid)]) assert.equal(other, first);
    assert.equal(reads, 3);
  });
}
