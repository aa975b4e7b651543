import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { diskFs, type SegmentFs } from "#node/storage/blockstore/segments/files.ts";
import { InlineReads, WITH_KNOWN, WITH_OTHERS } from "#node/storage/blockstore/segments/inline_reads.ts";
import { openSegmentStore } from "#node/storage/blockstore/segments/store.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import { eventually } from "#test/support/eventually.ts";
import { samples } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { folder, systemError } from "./workshop.ts";

/** A clock that only reads advance. */
function timed(patience = WITH_KNOWN) {
  let time = 0;
  const inline = new InlineReads(patience, () => time);
  const read = (ms: number, bytes = 0) =>
    inline.run(bytes, () => {
      time += ms;
      return "read";
    });
  const pass = (ms: number) => void (time += ms);
  /** Simulates a read by the thread pool that takes this long. */
  const pool = (ms: number) => {
    const began = time;
    pass(ms);
    inline.pooled(began);
  };
  return { read, pass, pool };
}

test("inline reads take a limited time per tick, and the next tick may read again", async () => {
  const { read } = timed();
  assert.deepEqual(
    [0.5, 0.5, 0.1].map((ms) => read(ms)),
    ["read", "read", undefined],
  );
  await nextTurn();
  assert.equal(read(0.1), "read");
});

test("a slow disk is left to the thread pool for a while, but a single slow read does not count", async () => {
  const { read, pass } = timed();
  const readInTurn = (ms: number) => nextTurn(read(ms));
  assert.equal(await readInTurn(20), "read");
  for (let times = 0; times < 50; times += 1) assert.equal(await readInTurn(0.01), "read");
  let slow = 0;
  while ((await readInTurn(5)) !== undefined) slow += 1;
  assert.ok(slow < 10, `${slow} were waited for`);
  pass(999);
  assert.equal(await readInTurn(0.01), undefined);
  pass(1);
  assert.equal(await readInTurn(0.01), "read");
});

test("reading many bytes takes time without counting as a slow disk", async () => {
  const { read } = timed();
  const mebibyte = 2 ** 20;
  for (let times = 0; times < 50; times += 1) assert.equal(await nextTurn(read(1, mebibyte)), "read");
  assert.equal(await nextTurn(read(0.01)), "read");
});

test("blocks that were not read before are read inline only shortly after a fast response of the disk", async () => {
  const { read, pass, pool } = timed(WITH_OTHERS);
  const isRead = async () => (await nextTurn(read(0.01))) === "read";
  assert.equal(await isRead(), false, "the disk may be asleep");
  pool(3000);
  assert.equal(await isRead(), false, "the disk was asleep");
  pool(1);
  assert.equal(await isRead(), true);
  pass(999);
  assert.equal(await isRead(), true);
  pass(1000);
  assert.equal(await isRead(), false);
});

test("the pauses for blocks that were not read before grow while the disk is slow", async () => {
  const { read, pass, pool } = timed(WITH_OTHERS);
  const readInTurn = (ms: number) => {
    pool(1);
    return nextTurn(read(ms));
  };
  /**
   * Returns the number of slow inline reads after which they stop, and the seconds until inline
   * reads begin again.
   */
  const tried = async () => {
    let slow = 0;
    while ((await readInTurn(10)) !== undefined) slow += 1;
    for (let seconds = 1; ; seconds += 1) {
      pass(999);
      if ((await readInTurn(0.01)) !== undefined) return [slow, seconds];
    }
  };
  assert.deepEqual(await tried(), [3, 1]);
  assert.deepEqual(await tried(), [3, 2]);
  assert.deepEqual(await tried(), [3, 4]);
  for (let times = 0; times < 100; times += 1) await readInTurn(0.01);
  assert.deepEqual(await tried(), [3, 1]);
});

/** Counts reads by their kind, and fails inline reads with `fault`. */
function counting() {
  const counts = { inline: 0, pool: 0, fault: undefined as Error | undefined };
  const fs: SegmentFs = {
    ...diskFs,
    async open(path, create) {
      const file = await diskFs.open(path, create);
      return {
        read: (into, at) => {
          counts.pool += 1;
          return file.read(into, at);
        },
        readInline: (into, at) => {
          counts.inline += 1;
          if (counts.fault !== undefined) throw counts.fault;
          return file.readInline?.(into, at) ?? 0;
        },
        write: (from, at) => file.write(from, at),
        sync: () => file.sync(),
        truncate: (length) => file.truncate(length),
        size: () => file.size(),
        close: () => file.close(),
      };
    },
  };
  return { counts, fs };
}

test("the thread pool reads large blocks that were not read before, and blocks that cannot be read inline", async (t) => {
  const { counts, fs } = counting();
  const store = await openSegmentStore(folder(), { fs, verifyOnRead: true });
  t.after(() => store.close());
  const blocks = samples(2, 70_000);
  await store.put(blocks);
  await store.sync();
  const [block, other] = blocks as [Block, Block];
  const buffers = new BufferPool();
  const read = async ({ cid, bytes }: Block) => {
    Object.assign(counts, { inline: 0, pool: 0 });
    await nextTurn();
    assert.deepEqual(await store.get(cid, buffers), bytes);
    return [counts.inline, counts.pool];
  };
  assert.deepEqual(await read(block), [0, 1]);
  assert.deepEqual(await read(other), [0, 1]);
  assert.deepEqual(await read(block), [1, 0]);
  counts.fault = systemError("EIO");
  assert.deepEqual(await read(block), [1, 1]);
});

test("small blocks that were not read before are read inline after the thread pool has read one", async (t) => {
  const { counts, fs } = counting();
  const store = await openSegmentStore(folder(), { fs, verifyOnRead: true });
  t.after(() => store.close());
  const blocks = samples(2000, 100);
  await store.put(blocks);
  await store.sync();
  // On a busy machine the thread pool may be slow at first, so this may take several reads.
  await eventually("one is read inline", async () => {
    const { cid, bytes } = blocks.pop() as Block;
    assert.deepEqual(await store.get(cid), bytes);
    return counts.inline > 0;
  });
  assert.ok(counts.pool > 0);
});

test("peek returns larger blocks that were read twice in one read, but no damaged, unread or removed ones", async (t) => {
  const { counts, fs } = counting();
  const at = folder();
  const store = await openSegmentStore(at, { fs, verifyOnRead: true });
  t.after(() => store.close());
  const blocks = samples(6, 20_000);
  const cids = blocks.map(({ cid }) => cid);
  await store.put(blocks);
  await store.sync();
  const buffers = new BufferPool();
  const [unread, ...known] = blocks as [Block, ...Block[]];
  for (const { cid } of known) {
    await store.get(cid, buffers);
    assert.deepEqual(store.peek([cid], buffers), [undefined], "a block that was read once has no checksum");
  }
  for (const { cid } of known) await nextTurn(store.get(cid, buffers));
  await nextTurn();
  counts.inline = 0;
  assert.deepEqual(store.peek(cids, buffers), [undefined, ...known.map(({ bytes }) => bytes)]);
  assert.equal(counts.inline, 1);
  const [damaged, removed, ...whole] = known as [Block, Block, ...Block[]];
  await damage(at, damaged);
  await store.delete([removed.cid]);
  await nextTurn();
  assert.deepEqual(store.peek(cids, buffers), [undefined, undefined, undefined, ...whole.map(({ bytes }) => bytes)]);
  assert.deepEqual(await store.get(unread.cid, buffers), unread.bytes);
  await assert.rejects(store.get(damaged.cid, buffers), { code: "BLOCK_CORRUPT" });
});

test("peek returns small blocks that were never read after a fast response of the disk, but no damaged or removed ones", async (t) => {
  const { counts, fs } = counting();
  const at = folder();
  const store = await openSegmentStore(at, { fs, verifyOnRead: true });
  t.after(() => store.close());
  const blocks = samples(2000, 100);
  await store.put(blocks);
  await store.sync();
  const buffers = new BufferPool();
  const [damaged, removed, ...whole] = blocks.splice(0, 40) as [Block, Block, ...Block[]];
  await damage(at, damaged);
  await store.delete([removed.cid]);
  assert.deepEqual(store.peek([damaged.cid], buffers), [undefined], "the speed of the disk is unknown");
  // On a busy machine the thread pool may be slow at first, so this may take several reads.
  await eventually("they are at hand", async () => {
    const { cid } = blocks.pop() as Block;
    await store.get(cid, buffers);
    await nextTurn();
    counts.inline = 0;
    const found = store.peek(
      [damaged, removed, ...whole].map(({ cid }) => cid),
      buffers,
    );
    if (found[2] === undefined) return false;
    assert.deepEqual(found, [undefined, undefined, ...whole.map(({ bytes }) => bytes)]);
    assert.ok(counts.inline <= 2, "adjacent blocks are read together");
    return true;
  });
  await assert.rejects(store.get(damaged.cid, buffers), { code: "BLOCK_CORRUPT" });
});

test("peek returns small blocks that were read before, even next to one that was not", async (t) => {
  const store = await openSegmentStore(folder(), { verifyOnRead: true });
  t.after(() => store.close());
  const blocks = samples(3, 4096);
  await store.put(blocks);
  await store.sync();
  const buffers = new BufferPool();
  const [one, unread, other] = blocks as [Block, Block, Block];
  for (const { cid } of [one, other, one, other]) await store.get(cid, buffers);
  // By then, it is unknown how fast the disk is.
  await sleep(2 * WITH_OTHERS.freshMs);
  const cids = blocks.map(({ cid }) => cid);
  let found: readonly (Uint8Array | undefined)[] = [];
  await eventually("they are at hand", async () => {
    await nextTurn();
    found = store.peek(cids, buffers);
    return found[0] !== undefined && found[2] !== undefined;
  });
  assert.deepEqual(found, [one.bytes, undefined, other.bytes]);
  assert.deepEqual(await store.get(unread.cid, buffers), unread.bytes);
});

test("the memory of small blocks that peek returned is reused when all of them were released", async (t) => {
  const store = await openSegmentStore(folder(), { verifyOnRead: true });
  t.after(() => store.close());
  const blocks = samples(10, 4096);
  await store.put(blocks);
  await store.sync();
  const buffers = new BufferPool();
  const cids = blocks.map(({ cid }) => cid);
  for (const cid of [...cids, ...cids]) await store.get(cid, buffers);
  const peeked = async () => {
    let found: readonly (Uint8Array | undefined)[] = [];
    await eventually("they are at hand", async () => {
      await nextTurn();
      found = store.peek(cids, buffers);
      return !found.includes(undefined);
    });
    assert.deepEqual(
      found,
      blocks.map(({ bytes }) => bytes),
    );
    return found as readonly Uint8Array[];
  };
  const [retained, ...others] = (await peeked()) as [Uint8Array, ...Uint8Array[]];
  for (const bytes of others) buffers.release(bytes);
  const before = retained.slice();
  const next = await peeked();
  assert.deepEqual(retained, before, "one of them is still in use");
  for (const bytes of next) buffers.release(bytes);
  const again = await peeked();
  assert.ok(again[0]?.buffer === next[0]?.buffer);
});

test("getSoon returns a small block that was read without a promise, but no damaged or removed one", async (t) => {
  const at = folder();
  const store = await openSegmentStore(at, { verifyOnRead: true });
  t.after(() => store.close());
  const blocks = samples(2, 4096);
  await store.put(blocks);
  await store.sync();
  const [block, other] = blocks as [Block, Block];
  for (const { cid, bytes } of [block, other, block, other]) assert.deepEqual(await store.getSoon(cid), bytes);
  // If this process was delayed during a read, the disk seems to be slow, and the store does not
  // read synchronously for a while.
  await eventually("it is at hand", async () => {
    await nextTurn();
    const coming = store.getSoon(block.cid);
    assert.deepEqual(await coming, block.bytes);
    return !(coming instanceof Promise);
  });
  await damage(at, other);
  await assert.rejects(async () => store.getSoon(other.cid), { code: "BLOCK_CORRUPT" });
  const { removals } = store;
  await store.delete([block.cid]);
  assert.equal(store.getSoon(block.cid), undefined);
  assert.notEqual(store.removals, removals);
});

async function damage(at: string, { bytes }: Block): Promise<void> {
  const name = join(at, (await readdir(at)).find((file) => file.endsWith(".car")) as string);
  const content = await readFile(name);
  const within = content.indexOf(bytes) + (bytes.length >> 1);
  content[within] = (content[within] as number) ^ 1;
  await writeFile(name, content, { flag: "r+" });
}
