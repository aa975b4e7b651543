import assert from "node:assert/strict";
import { test } from "node:test";
import { detachedCid, lasting } from "#node/formats/cid/detached.ts";
import { castCid } from "#node/formats/cid/text.ts";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { sample, samples } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";

for (const count of [1, 100]) {
  test(`${count} links of a large block outlive its buffer and keep little more than their own bytes in memory`, () => {
    const pool = new BufferPool();
    const block = pool.take(256 * 1024);
    const cids = samples(count, 10).map(({ cid }) => cid);
    let at = 0;
    const links = cids.map(({ bytes }) => {
      block.set(bytes, at);
      at += bytes.length;
      return castCid(block.subarray(at - bytes.length, at));
    });
    const copies = lasting(links, block, pool);
    block.fill(0);
    assert.deepEqual(copies.map(String), cids.map(String));
    for (const { bytes } of copies) assert.ok(bytes.buffer.byteLength <= Math.min(512, count * bytes.length));
  });
}

const kinds: readonly (readonly [string, (length: number) => Uint8Array])[] = [
  ["an array", (length) => new Uint8Array(length)],
  ["a Buffer", (length) => Buffer.alloc(length)],
];
for (const [kind, make] of kinds) {
  test(`detachedCid copies a CID out of a large block that is ${kind}`, () => {
    const { cid } = sample(1);
    const block = make(256 * 1024);
    block.set(cid.bytes, 10);
    const detached = detachedCid(castCid(block.subarray(10, 10 + cid.bytes.length)));
    block.fill(0);
    assert.equal(String(detached), String(cid));
    assert.equal(detached.bytes.buffer.byteLength, cid.bytes.length);
  });
}
