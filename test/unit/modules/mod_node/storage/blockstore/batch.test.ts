import assert from "node:assert/strict";
import { test } from "node:test";
import { BlockBatch } from "#node/storage/blockstore/batch.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import { sample, samples } from "./samples.ts";

class Store {
  readonly puts: number[] = [];
  work: () => Promise<void> = async () => {};

  async put(blocks: readonly Block[]): Promise<void> {
    this.puts.push(blocks.length);
    await this.work();
  }
}

test("small blocks are put in batches, and flush puts the rest", async () => {
  const store = new Store();
  const batch = new BlockBatch(store);
  for (const block of samples(700)) await batch.add(block);
  assert.deepEqual(store.puts, [512]);
  await batch.flush();
  assert.deepEqual(store.puts, [512, 188]);
  await batch.flush();
  assert.deepEqual(store.puts, [512, 188]);
});

test("large blocks fill a batch by their bytes, and the caller that fills it waits for the store", async () => {
  const store = new Store();
  const disk = Promise.withResolvers<void>();
  store.work = () => disk.promise;
  const batch = new BlockBatch(store);
  const large = sample(1, 600_000);
  assert.equal(batch.add(large), undefined);
  const waiting = batch.add(large);
  assert.deepEqual(store.puts, [2]);
  disk.resolve();
  await waiting;
});

test("flush and all later calls report a put that failed", async () => {
  const store = new Store();
  store.work = () => Promise.reject(new Error("disk full"));
  const batch = new BlockBatch(store);
  const [block] = samples(1);
  batch.add(block as Block);
  await assert.rejects(batch.flush(), { message: "disk full" });
  await assert.rejects(batch.flush(), { message: "disk full" });
  const large = sample(2, 2_000_000);
  await assert.rejects(Promise.resolve(batch.add(large)), { message: "disk full" });
  assert.deepEqual(store.puts, [1]);
});
