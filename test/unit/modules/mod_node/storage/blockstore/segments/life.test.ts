import assert from "node:assert/strict";
import { test } from "node:test";
import type { CID } from "multiformats/cid";
import { openSegmentStore } from "#node/storage/blockstore/segments/store.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import {
  as,
  contents,
  contentsOf,
  dagPb,
  legacy,
  samples,
} from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { copyOf, dump, folder, PowerCut } from "./workshop.ts";

/** Pseudo-random numbers below `bound` that are the same in each run. */
function dice(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return Math.floor(((state ^ (state >>> 13)) >>> 0) % bound);
  };
}

const options = { segmentBytes: 6000, bufferedBytes: 20_000 };

/**
 * Random puts, deletions, compactions and openings, compared with a plain map that does the same.
 * Sometimes the power is cut, and the remaining content is compared with what was acknowledged.
 */
async function live(seed: number): Promise<void> {
  const roll = dice(seed);
  const at = folder();
  const power = new PowerCut(at, () => {}, { through: seed % 2 === 0 });
  const open = () => openSegmentStore(at, { ...options, fs: power.fs });
  const blocks = samples(120, 250);
  const one = (): Block => {
    const { cid, bytes } = blocks[roll(blocks.length)] as Block;
    return { cid: [cid, as(cid, dagPb), legacy(cid)][roll(3)] as CID, bytes };
  };
  const some = (most: number) => Array.from({ length: 1 + roll(most) }, one);

  let store = await open();
  const storedForms = new Map<string, Block>();
  /** Forms that were put without sync: they may be lost or stored. */
  let loose = new Map<string, Block>();
  for (let step = 0; step < 150; step += 1) {
    const what = roll(20);
    if (what < 10) {
      const put = some(15);
      await store.put(put);
      for (const block of put) if (!storedForms.has(String(block.cid))) loose.set(String(block.cid), block);
    }
    if (what === 10 || what < 4) {
      await store.sync();
      for (const [key, block] of loose) storedForms.set(key, block);
      loose = new Map();
    }
    if (what === 11 || what === 12) {
      const cids = some(40).map(({ cid }) => cid);
      const acknowledgedForms = await store.delete(cids);
      for (const [at, cid] of cids.entries()) {
        const key = String(cid);
        assert.equal(acknowledgedForms[at], storedForms.delete(key) || loose.delete(key), `seed ${seed}, step ${step}`);
      }
      // A deletion syncs.
      for (const [key, block] of loose) storedForms.set(key, block);
      loose = new Map();
    }
    if (what === 13) {
      await store.compact();
      for (const [key, block] of loose) storedForms.set(key, block);
      loose = new Map();
    }
    if (what === 14) {
      await store.close();
      for (const [key, block] of loose) storedForms.set(key, block);
      loose = new Map();
      store = await open();
    }
    if (what === 15 && roll(3) === 0) {
      const cut = await power.copy();
      const left = await openSegmentStore(roll(2) === 0 ? cut : await copyOf(cut, { index: false }), options);
      const found = await contents(left);
      for (const [key, bytes] of contentsOf([...storedForms.values()])) {
        assert.equal(found.get(key), bytes, `seed ${seed}, step ${step}: ${key} is lost`);
      }
      for (const key of found.keys()) {
        assert.ok(storedForms.has(key) || loose.has(key), `seed ${seed}, step ${step}: ${key} came back`);
      }
      assert.equal((await left.stat()).blocks, found.size);
      await left.close();
    }
  }
  const expected = contentsOf([...storedForms.values(), ...loose.values()]);
  assert.deepEqual(await contents(store), expected);
  assert.equal((await store.stat()).blocks, expected.size);
  await store.close();
  const copy = await copyOf(at, { index: false });
  const rebuilt = await openSegmentStore(copy, options);
  assert.deepEqual(await contents(rebuilt), expected);
  await rebuilt.close();
  assert.deepEqual(await dump(copy), await dump(at), `seed ${seed}`);
}

test("no acknowledged block is lost and no deleted one comes back, whatever happens in whatever order", async () => {
  for (let seed = 1; seed <= Number(process.env.MODHOST_LIVES ?? 5); seed += 1) await live(seed);
});
