/**
 * Compares the segment store with plain appending of the same bytes:
 * `node --conditions=source test/bench/blocks.ts`.
 */
import { hash } from "node:crypto";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { CID } from "multiformats/cid";
import { create } from "multiformats/hashes/digest";
import { openSegmentStore } from "#node/storage/blockstore/segments/store.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import { median } from "./measure.ts";

const mebibyte = 1024 * 1024;

/**
 * Makes blocks that differ in their first bytes. Their hashes are made beforehand, so that hashing
 * is not measured.
 */
function made(count: number, length: number, from = 0): Block[] {
  return Array.from({ length: count }, (_, at) => {
    const bytes = new Uint8Array(length).fill(at);
    new DataView(bytes.buffer).setUint32(0, from + at);
    return { cid: CID.createV1(0x55, create(0x12, hash("sha256", bytes, "buffer"))), bytes };
  });
}

async function seconds(run: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await run();
  return (performance.now() - began) / 1000;
}

async function append(file: string, blocks: readonly Block[]): Promise<void> {
  const handle = await open(file, "w");
  for (let at = 0; at < blocks.length; at += 16) {
    await handle.writev(blocks.slice(at, at + 16).map(({ bytes }) => bytes));
  }
  await handle.datasync();
  await handle.close();
}

/** Appends 1 KiB and flushes, one after the other: the speed of the disk for a single writer. */
async function appendEach(file: string, blocks: readonly Block[]): Promise<void> {
  const handle = await open(file, "w");
  for (const { bytes } of blocks) {
    await handle.write(bytes);
    await handle.datasync();
  }
  await handle.close();
}

async function inParallel<T>(items: readonly T[], width: number, run: (item: T) => Promise<unknown>): Promise<void> {
  const next = items.values();
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (const item of next) await run(item);
    }),
  );
}

const say = (what: string, value: number, unit: string) =>
  console.log(`${what.padEnd(62)} ${value.toFixed(value < 10 ? 2 : 0).padStart(8)} ${unit}`);

async function benchBlocks({ rounds = 5 }: { rounds?: number } = {}): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "modhost-bench-blocks-"));
  try {
    const large = made(1024, 256 * 1024);
    const ratios: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const plain = await seconds(() => append(join(home, "plain"), large));
      await rm(join(home, "plain"));
      const store = await openSegmentStore(join(home, "large"));
      const put = await seconds(async () => {
        for (const block of large) await store.put([block]);
        await store.sync();
      });
      await store.close();
      await rm(join(home, "large"), { recursive: true });
      say("256 blocks of 256 KiB each, put one by one and synced".replace("256 ", "1,024 "), 256 / put, "MiB/s");
      say("  the same bytes appended and flushed", 256 / plain, "MiB/s");
      ratios.push(plain / put);
    }
    say("  ratio, median", median(ratios), "");

    const store = await openSegmentStore(join(home, "store"));
    const small = made(4000, 1024, 1_000_000);
    const synced = await seconds(() =>
      inParallel(small, 8, async (block) => {
        await store.put([block]);
        await store.sync();
      }),
    );
    say("puts of 1 KiB with a sync each, 8 at a time", small.length / synced, "/s");
    const flushed = await seconds(() => appendEach(join(home, "each"), small.slice(0, 500)));
    say("  appends of 1 KiB with a flush each, one at a time", 500 / flushed, "/s");

    const many = made(100_000, 200, 2_000_000);
    const batched = await seconds(async () => {
      for (let at = 0; at < many.length; at += 100) await store.put(many.slice(at, at + 100));
      await store.sync();
    });
    say("puts of 200 bytes, 100 at a time, one sync at the end", many.length / batched, "/s");

    say(
      "gets of 1 KiB, 8 at a time",
      rate(small, await seconds(() => inParallel(small, 8, ({ cid }) => store.get(cid)))),
      "/s",
    );
    say(
      "has, one after the other",
      rate(many, await seconds(() => inParallel(many, 1, ({ cid }) => store.has(cid)))),
      "/s",
    );
    await store.put(large);
    await store.sync();
    const read = await seconds(() => inParallel(large, 8, ({ cid }) => store.get(cid)));
    say("gets of 256 KiB, 8 at a time", large.length / read, "/s");
    say("  that is", (large.length * 256 * 1024) / mebibyte / read, "MiB/s");
    let keys = 0;
    const listed = await seconds(async () => {
      for await (const _ of store.keys()) keys += 1;
    });
    say("keys listed", keys / listed, "/s");
    say("closed in", await seconds(() => store.close()), "s");
    const opened = await seconds(async () => (await openSegmentStore(join(home, "store"))).close());
    say("opened and closed in", opened, "s");
    await rm(join(home, "store", "index"), { recursive: true });
    const rebuilt = await seconds(async () => (await openSegmentStore(join(home, "store"))).close());
    say("opened with no index, and closed, in", rebuilt, "s");
  } finally {
    await rm(home, { recursive: true });
  }
}

const rate = (items: readonly unknown[], took: number): number => items.length / took;

if (import.meta.main) {
  const { values } = parseArgs({ options: { rounds: { type: "string" } } });
  await benchBlocks(values.rounds === undefined ? {} : { rounds: Number(values.rounds) });
}
