import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { diskFs, type SegmentFs } from "#node/storage/blockstore/segments/files.ts";
import { openSegmentStore } from "#node/storage/blockstore/segments/store.ts";
import type { Block, Span } from "#node/storage/blockstore/store.ts";
import { samples } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { folder } from "./workshop.ts";

const KIB = 1024;
const LENGTH = 320 * KIB - 100;

/** A store with one large block, and the number of bytes that are read from its file. */
async function opened(t: TestContext) {
  const counts = { bytes: 0 };
  const count = (into: readonly Uint8Array[]) => {
    for (const { length } of into) counts.bytes += length;
  };
  const fs: SegmentFs = {
    ...diskFs,
    async open(path, create) {
      const file = await diskFs.open(path, create);
      const { read, readInline } = file;
      file.read = (into, at) => {
        count(into);
        return read.call(file, into, at);
      };
      file.readInline = (into, at) => {
        count(into);
        return readInline?.call(file, into, at) as number;
      };
      return file;
    },
  };
  const at = folder();
  const store = await openSegmentStore(at, { fs, verifyOnRead: true });
  t.after(() => store.close());
  const [block] = samples(1, LENGTH) as [Block];
  await store.put([block]);
  await store.sync();
  const buffers = new BufferPool();
  /** Returns the number of bytes that are read for a span, and checks the result. */
  const readFor = async (span: Span, message?: string) => {
    counts.bytes = 0;
    const bytes = (await store.getPart(block.cid, span, buffers)) as Uint8Array;
    assert.deepEqual(Buffer.from(bytes), Buffer.from(block.bytes.subarray(span.from, span.to)), message);
    buffers.release(bytes);
    return counts.bytes;
  };
  return { at, store, block, buffers, readFor };
}

test("getPart reads only the parts with the requested bytes after a large block was read once", async (t) => {
  const { readFor } = await opened(t);
  const within = { from: 70 * KIB, to: 71 * KIB };
  assert.equal(await readFor(within), LENGTH, "the first read is of the whole block");
  assert.equal(await readFor(within), 64 * KIB);
  assert.equal(await readFor({ from: 64 * KIB, to: 128 * KIB }), 64 * KIB);
  assert.equal(await readFor({ from: 128 * KIB - 1, to: 128 * KIB + 1 }), 128 * KIB);
  assert.equal(
    await readFor({ from: 300 * KIB, to: Number.POSITIVE_INFINITY }),
    64 * KIB - 100,
    "the last part of the block",
  );
  assert.equal(await readFor({ from: 10, to: 200 * KIB }), LENGTH, "a span with most parts reads the whole block");
  assert.equal(await readFor({ from: LENGTH, to: LENGTH + 10 }), 64 * KIB - 100, "a span behind the end");
  assert.equal(await readFor({ from: 2 * LENGTH, to: 3 * LENGTH }), LENGTH, "a span far behind the end");
});

test("a read of a damaged part reports the damage, and other parts are still right", async (t) => {
  const { at, store, block, buffers, readFor } = await opened(t);
  const spans = [0, 64, 128, 192, 256].map((begin) => ({ from: begin * KIB, to: (begin + 1) * KIB }));
  const [first, damaged, ...others] = spans as [Span, Span, ...Span[]];
  for (const span of spans) await readFor(span);
  await damage(at, block, damaged.from + 40 * KIB);
  for (const span of [first, ...others]) assert.ok((await readFor(span)) <= 64 * KIB);
  await assert.rejects(store.getPart(block.cid, damaged, buffers), { code: "BLOCK_CORRUPT" });
  assert.ok((await readFor(first)) <= 64 * KIB);
});

test("the service returns parts from any store, refuses denied blocks, and reads whole blocks that it must hash", async (t) => {
  const { store, block, buffers } = await opened(t);
  const service = new BlockService(store);
  const span = { from: 5, to: 15 };
  const read = async () => Buffer.from(await service.getPart(block.cid, span, { buffers }));
  const wanted = Buffer.from(block.bytes.subarray(5, 15));
  for (let times = 0; times < 3; times += 1) assert.deepEqual(await read(), wanted);
  service.hashOnRead = true;
  assert.deepEqual(await read(), wanted);
  service.hashOnRead = false;
  const denied = new Error("denied");
  service.denials = {
    denies: () => true,
    requireBlock() {
      throw denied;
    },
  };
  await assert.rejects(read(), denied);
  service.denials = undefined;
  await store.delete([block.cid]);
  await assert.rejects(read(), { code: "BLOCK_NOT_FOUND" });
});

async function damage(at: string, { bytes }: Block, offset: number): Promise<void> {
  const name = join(at, (await readdir(at)).find((file) => file.endsWith(".car")) as string);
  const content = await readFile(name);
  const within = content.indexOf(bytes) + offset;
  content[within] = (content[within] as number) ^ 1;
  await writeFile(name, content, { flag: "r+" });
}
