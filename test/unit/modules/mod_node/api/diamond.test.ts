/**
 * Walks a graph of few blocks and very many paths: 16 links on each of 12 levels. No walk may
 * follow each path.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { CID } from "multiformats/cid";
import { encodePb } from "#node/formats/dag_pb/dag_pb.ts";
import { encodeUnixfs } from "#node/formats/unixfs/format.ts";
import { createNode, memoryStores, type Node } from "#node/index.ts";
import { blockFormat, makeBlock } from "#node/storage/blockstore/make_block.ts";
import type { BlockStore } from "#node/storage/blockstore/store.ts";

const levels = 12;
const width = 16;
/** The number of levels, and of blocks below the last level. */
const blocks = levels + 1;
/** Blocks that are read ahead may be read once more. */
const MAX_READS = 3 * blocks;

let folder: string;
let node: Node;
let store: BlockStore;
let reads = 0;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-diamond-"));
  const stores = memoryStores();
  store = stores.blocks;
  const { get } = store;
  store.get = async (...given) => {
    reads += 1;
    return get.apply(store, given);
  };
  node = await createNode({ repo: folder, offline: true, stores: async () => stores });
});
after(async () => {
  await node.stop();
  await rm(folder, { recursive: true, force: true });
});

type Form = "directory" | "file";

async function put(bytes: Uint8Array): Promise<CID> {
  const block = await makeBlock(bytes, blockFormat("v0", "sha2-256", -1));
  await store.put([block]);
  return block.cid;
}

/**
 * Builds such a graph over one file; with `claimed`, over a file whose parts claim that many bytes
 * each.
 */
async function diamond(text: string, form: Form = "directory", claimed?: number): Promise<CID> {
  const data = Buffer.from(text);
  let filesize = data.length;
  let cid = await put(encodePb({ data: encodeUnixfs({ type: "File", data, filesize }), links: [] }));
  for (let level = 0; level < levels; level += 1) {
    const links = Array.from({ length: width }, (_, at) => ({ name: form === "file" ? "" : `${at}`, size: 1, cid }));
    const size = claimed ?? filesize;
    filesize = claimed === undefined ? filesize * width : claimed * width;
    const file = { type: "File", filesize, blocksizes: links.map(() => size) } as const;
    cid = await put(encodePb({ data: encodeUnixfs(form === "file" ? file : { type: "Directory" }), links }));
  }
  return cid;
}

const all = async (source: AsyncIterable<unknown>) => {
  for await (const _ of source);
};

const walkers: Readonly<Record<string, (root: CID) => Promise<unknown>>> = {
  "dag/stat": (root) => all(node.dag.stat(root)),
  "dag/export": (root) => all(node.dag.export(root)),
  "refs -r --unique": (root) => all(node.refs(root, { recursive: true, unique: true })),
  "pin/add": (root) => node.pin.add(root),
  "pin/ls --type=all": () => all(node.pin.ls({ type: "all" })),
  "pin/verify": () => all(node.pin.verify()),
  "pin/update": async (root) => node.pin.update(root, await diamond("another")),
  "repo/gc": () => all(node.repo.gc()),
  "files/stat --with-local": (root) => node.files.stat(`/ipfs/${root}`, { withLocal: true }),
  "files/cp": (root) => node.files.cp(root, "/copied"),
  "files/ls": () => all(node.files.ls("/copied")),
  "object/stat": (root) => node.object.stat(root),
  ls: (root) => all(node.ls(root)),
};

for (const [name, walk] of Object.entries(walkers)) {
  test(`${name} reads each block of a graph with very many paths a few times at most`, async () => {
    const root = await diamond("content");
    await node.pin.add(root);
    reads = 0;
    await walk(root);
    assert.ok(reads <= 2 * MAX_READS, `${reads} reads of ${blocks} blocks`);
  });
}

test("the locally stored size of such a graph counts each path", async () => {
  const stat = await node.files.stat(`/ipfs/${await diamond("content")}`, { withLocal: true });
  assert.equal(stat.local, true);
  assert.ok((stat.sizeLocal ?? 0) > width ** levels * "content".length);
});

test("object/diff of such graphs reads each pair once, and fails if there are too many differences", async () => {
  const one = await diamond("one");
  const other = await diamond("other");
  reads = 0;
  await assert.rejects(node.object.diff(one, other), /these differ at more than 100000 paths/);
  assert.ok(reads <= 4 * MAX_READS, `${reads} reads`);
});

/** Yields the first values only. */
async function some(source: AsyncIterable<unknown>, count: number): Promise<number> {
  let taken = 0;
  for await (const _ of source) {
    taken += 1;
    if (taken === count) break;
  }
  return taken;
}

const endless: Readonly<Record<string, (signal?: AbortSignal) => Promise<AsyncIterable<unknown>>>> = {
  "refs -r": async (signal) => node.refs(await diamond("content"), { recursive: true, signal }),
  get: async (signal) => node.get(await diamond("content"), { signal }),
  cat: async (signal) => node.cat(await diamond("content", "file"), { signal }),
};

for (const [name, open] of Object.entries(endless)) {
  test(`${name} follows each path, no faster than its output is read, and ends with its reader`, async () => {
    const source = await open();
    reads = 0;
    assert.equal(await some(source, 200), 200);
    const then = reads;
    // A piece of an archive has up to 64 KiB, which is enough for 128 heads of small files and
    // folders. How full it is depends on timing.
    assert.ok(then < 201 * 128, `${then} reads`);
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.ok(reads - then < 100, `${reads - then} reads after the reader had left`);
  });

  test(`${name} ends when its call is aborted`, async () => {
    const leaving = new AbortController();
    setTimeout(() => leaving.abort(new Error("given up")), 10);
    await assert.rejects(all(await open(leaving.signal)), /given up/);
  });
}

test("cat of a file whose parts claim more bytes than they have ends when its reader stops", async () => {
  const root = await diamond("", "file", 1);
  const leaving = new AbortController();
  setTimeout(() => leaving.abort(new Error("given up")), 10);
  await assert.rejects(all(node.cat(root, { signal: leaving.signal })), /given up/);
});
