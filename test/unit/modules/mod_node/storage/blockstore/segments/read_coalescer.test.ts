import assert from "node:assert/strict";
import { readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { CID } from "multiformats/cid";
import { create } from "multiformats/hashes/digest";
import { hashCoded, sha256 } from "#node/formats/cid/hashes.ts";
import { encodePb } from "#node/formats/dag_pb/dag_pb.ts";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { openSegmentStore } from "#node/storage/blockstore/segments/store.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import { as, dagPb, samples } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { folder, systemError, watched } from "./workshop.ts";

interface Shelf {
  readonly store: Awaited<ReturnType<typeof openSegmentStore>>;
  readonly at: string;
  /** Number of disk reads since this was set to 0. */
  reads: number;
  /** The error that the next reads throw. */
  fault: Error | undefined;
}

/** A store whose blocks are on the disk. */
async function shelf(t: TestContext, blocks: readonly Block[], segmentBytes?: number): Promise<Shelf> {
  const at = folder();
  const made: { -readonly [K in keyof Shelf]?: Shelf[K] } = { at, reads: 0, fault: undefined };
  const fs = watched((operation) => {
    if (operation !== "read") return;
    made.reads = (made.reads ?? 0) + 1;
    if (made.fault !== undefined) throw made.fault;
  });
  const options = segmentBytes === undefined ? {} : { segmentBytes };
  const store = await openSegmentStore(at, { fs, verifyOnRead: true, ...options });
  t.after(() => store.close());
  await store.put(blocks);
  await store.sync();
  return Object.assign(made as Shelf, { store, reads: 0 });
}

const getAll = ({ store }: Shelf, blocks: readonly Block[], buffers?: BufferPool) =>
  Promise.all(blocks.map(({ cid }) => store.get(cid, buffers)));

const same = (read: readonly (Uint8Array | undefined)[], blocks: readonly Block[]) => {
  for (const [at, { bytes }] of blocks.entries()) assert.deepEqual(read[at], bytes);
};

test("adjacent blocks that are requested together are read together", async (t) => {
  const blocks = samples(8, 20_000);
  const setup = await shelf(t, blocks);
  same(await getAll(setup, blocks), blocks);
  assert.equal(setup.reads, 1);
  setup.reads = 0;
  for (const { cid, bytes } of blocks) assert.deepEqual(await setup.store.get(cid), bytes);
  assert.equal(setup.reads, 8);
});

test("blocks that are requested in another order, twice, from several segments or with gaps each get their own bytes", async (t) => {
  const blocks = samples(30, 3000);
  const setup = await shelf(t, blocks, 20_000);
  const orders = [blocks.toReversed(), [...blocks, ...blocks], blocks.filter((_, at) => at % 3 !== 1)];
  for (const order of orders) same(await getAll(setup, order, new BufferPool()), order);
});

test("small blocks for readers that do not retain them are read together in any order, and later reads change none of them", async (t) => {
  const blocks = samples(60, 4096);
  const setup = await shelf(t, blocks);
  const buffers = new BufferPool();
  const first = await getAll(setup, blocks.slice(0, 20).toReversed(), buffers);
  assert.equal(setup.reads, 1);
  same(await getAll(setup, blocks.slice(20), buffers), blocks.slice(20));
  assert.equal(setup.reads, 3, "so many bytes at a time");
  same(first, blocks.slice(0, 20).toReversed());
});

test("no read is longer than a mebibyte, unless a block is", async (t) => {
  const blocks = samples(9, 256 * 1024);
  const setup = await shelf(t, blocks);
  same(await getAll(setup, blocks), blocks);
  assert.equal(setup.reads, 3);
});

test("a damaged block among others is reported alone, and a truncated file damages the blocks after its end", async (t) => {
  const blocks = samples(6, 50_000);
  const setup = await shelf(t, blocks);
  const name = join(setup.at, (await readdir(setup.at)).find((file) => file.endsWith(".car")) as string);
  const bytes = await readFile(name);
  const inSecond = bytes.indexOf((blocks[1] as Block).bytes) + 40_000;
  bytes[inSecond] = (bytes[inSecond] as number) ^ 1;
  await writeFile(name, bytes, { flag: "r+" });
  const outcomes = async () => await Promise.allSettled(blocks.map(({ cid }) => setup.store.get(cid)));
  const second = await outcomes();
  assert.deepEqual(
    second.map(({ status }) => status === "fulfilled"),
    [true, false, true, true, true, true],
  );
  const { reason } = second[1] as PromiseRejectedResult;
  assert.match(reason.message, new RegExp(`block ${blocks[1]?.cid} is damaged on disk`));
  await truncate(name, (await stat(name)).size - 60_000);
  assert.deepEqual(
    (await outcomes()).map(({ status }) => status === "fulfilled"),
    [true, false, true, true, false, false],
  );
});

test("a failing disk is reported to all callers, and the next ones are served", async (t) => {
  const blocks = samples(4, 20_000);
  const setup = await shelf(t, blocks);
  setup.fault = systemError("EIO");
  for (const outcome of await Promise.allSettled(blocks.map(({ cid }) => setup.store.get(cid)))) {
    assert.equal(outcome.status, "rejected");
    assert.match(outcome.reason.message, /EIO/);
  }
  setup.fault = undefined;
  same(await getAll(setup, blocks), blocks);
});

test("leased buffers are filled again only after they were released", async (t) => {
  const blocks = samples(40, 30_000);
  const setup = await shelf(t, blocks);
  const buffers = new BufferPool();
  const first = await getAll(setup, blocks.slice(0, 20), buffers);
  same(await getAll(setup, blocks.slice(20), buffers), blocks.slice(20));
  same(first, blocks.slice(0, 20));
  const pool = new Set(first.map((bytes) => bytes?.buffer));
  for (const bytes of first) buffers.release(bytes as Uint8Array);
  const second = await getAll(setup, blocks.slice(0, 20), buffers);
  same(second, blocks.slice(0, 20));
  assert.ok(second.every((bytes) => pool.has(bytes?.buffer)));
});

async function node(links: readonly CID[]): Promise<Block> {
  const bytes = encodePb({ data: undefined, links: links.map((cid) => ({ cid, name: "", size: 1 })) });
  const digest = (await hashCoded(sha256.code)?.digest?.(bytes)) as Uint8Array;
  return { cid: CID.createV1(dagPb, create(sha256.code, digest)), bytes };
}

test("a reader that passes blocks on reads a node with links once per moment, and notices its removal", async (t) => {
  const leaves = samples(3, 20_000);
  const parent = await node(leaves.map(({ cid }) => cid));
  const setup = await shelf(t, [...leaves, parent]);
  const buffers = new BufferPool();
  for (let round = 0; round < 3; round += 1) assert.deepEqual(await setup.store.get(parent.cid, buffers), parent.bytes);
  assert.equal(setup.reads, 1);
  // Other readers always read the disk.
  await setup.store.get(parent.cid);
  await setup.store.get(parent.cid);
  assert.equal(setup.reads, 3);
  assert.equal(await setup.store.get(as(parent.cid, 0x71), buffers), undefined);
  await setup.store.delete([parent.cid]);
  assert.equal(await setup.store.get(parent.cid, buffers), undefined);
});
