import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { diskFs, type SegmentFs } from "#node/storage/blockstore/segments/files.ts";
import { InlineReads } from "#node/storage/blockstore/segments/inline_reads.ts";
import { openSegmentStore } from "#node/storage/blockstore/segments/store.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import { samples } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { folder, systemError } from "./workshop.ts";

/** A clock that only reads move on. */
function timed() {
  let time = 0;
  const inline = new InlineReads(() => time);
  const read = (ms: number, bytes = 0) =>
    inline.run(bytes, () => {
      time += ms;
      return "read";
    });
  return { read, pass: (ms: number) => void (time += ms) };
}

test("in one turn of the event loop reads take so long at most; the next turn may read again", async () => {
  const { read } = timed();
  assert.deepEqual(
    [0.5, 0.5, 0.1].map((ms) => read(ms)),
    ["read", "read", undefined],
  );
  await nextTurn();
  assert.equal(read(0.1), "read");
});

test("a disk that is waited for is left to the thread pool for a while; one read that took long is not that", async () => {
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

test("many bytes take their time: that is no wait for the disk", async () => {
  const { read } = timed();
  const mebibyte = 2 ** 20;
  for (let times = 0; times < 50; times += 1) assert.equal(await nextTurn(read(1, mebibyte)), "read");
  assert.equal(await nextTurn(read(0.01)), "read");
});

/** Counts what is read where, and fails what is read inline with `fault`. */
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

test("only blocks that were read before are read inline, and one that cannot be is left to the pool", async (t) => {
  const { counts, fs } = counting();
  const store = await openSegmentStore(folder(), { fs, verifyOnRead: true });
  t.after(() => store.close());
  const blocks = samples(2, 20_000);
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

test("blocks that were read twice are there at once, in one read; damaged, unread and removed ones are not", async (t) => {
  const { counts, fs } = counting();
  const at = folder();
  const store = await openSegmentStore(at, { fs, verifyOnRead: true });
  t.after(() => store.close());
  const blocks = samples(6, 4096);
  const cids = blocks.map(({ cid }) => cid);
  await store.put(blocks);
  await store.sync();
  const buffers = new BufferPool();
  const [unread, ...known] = blocks as [Block, ...Block[]];
  for (const { cid } of known) {
    await store.get(cid, buffers);
    assert.deepEqual(store.peek([cid], buffers), [undefined], "read once, it has no sum");
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

async function damage(at: string, { bytes }: Block): Promise<void> {
  const name = join(at, (await readdir(at)).find((file) => file.endsWith(".car")) as string);
  const content = await readFile(name);
  const within = content.indexOf(bytes) + 100;
  content[within] = (content[within] as number) ^ 1;
  await writeFile(name, content, { flag: "r+" });
}
