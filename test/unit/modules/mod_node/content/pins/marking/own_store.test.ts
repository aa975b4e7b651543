import assert from "node:assert/strict";
import { test } from "node:test";
import type { CID } from "multiformats/cid";
import { collectGarbage } from "#node/content/pins/gc.ts";
import { Pins, pinKey } from "#node/content/pins/pins.ts";
import { raw } from "#node/formats/cid/codecs.ts";
import { makeCid } from "#node/formats/cid/make.ts";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import type { BlockStore } from "#node/storage/blockstore/store.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { SharedLock } from "#node/util/async/shared_lock.ts";
import { Chance, Contents, Graph, outcomeOf, retainedBy } from "./model.ts";

const { MODHOST_GC_SEEDS: seeds = "100", MODHOST_GC_FIRST: first = "1" } = process.env;

/** A store in which all forms of a multihash are one block, as in the files of Kubo 0.43. */
function joinedBlocks(): BlockStore {
  const blocks = memoryBlocks();
  const one = ({ multihash }: CID) => makeCid(1, raw, multihash);
  const forms = async (cid: CID) => ((await blocks.has(one(cid))) ? [one(cid)] : []);
  return Object.assign(Object.create(blocks), {
    joinsForms: true,
    forms,
    get: (cid: CID) => blocks.get(one(cid)),
    has: (cid: CID) => blocks.has(one(cid)),
    size: (cid: CID) => blocks.size(one(cid)),
    put: (put: Parameters<BlockStore["put"]>[0]) => blocks.put(put.map((block) => ({ ...block, cid: one(block.cid) }))),
    delete: (cids: readonly CID[]) => blocks.delete(cids.map(one)),
    keys: () => blocks.keys(),
  });
}

for (const [name, open] of [
  ["each form of a multihash is stored by itself", memoryBlocks],
  ["the forms of a multihash are one block", joinedBlocks],
] as const) {
  test(`a collection retains exactly the blocks below all kinds of roots, in any order of roots, where ${name}`, async () => {
    for (let seed = Number(first); seed < Number(first) + Number(seeds); seed += 1) {
      const chance = new Chance(seed);
      const graph = await Graph.random(chance, 3 + chance.below(20), String(seed));
      const store = open();
      const metadata = memoryMetadata();
      const blocks = new BlockService(store);
      const pins = new Pins(blocks, metadata, new SharedLock());
      const stored = graph.stored(graph.missing());
      await store.put(stored);
      const contents = new Contents(stored);
      const before = await Array.fromAsync(store.keys());
      const roots = graph.roots((cid) => contents.isComplete(cid));
      await pins.keep(roots.recursive);
      await metadata.transaction((writer) => {
        for (const cid of roots.direct) writer.put(pinKey("direct", cid), new Uint8Array());
      });
      pins.guard(() => roots.guarded);
      const errors: string[] = [];
      await collectGarbage(blocks, pins, (result) => "error" in result && errors.push(result.error), {
        partial: roots.present,
      });
      const after = await Array.fromAsync(store.keys());
      const reads = async (cid: CID) => (await blocks.find(cid)) !== undefined;
      const { lost, left } = await outcomeOf(retainedBy(contents, roots), contents, { before, after }, reads);
      assert.deepEqual({ lost, left: left.map(String), errors, seed }, { lost: [], left: [], errors: [], seed });
    }
  });
}
