import assert from "node:assert/strict";
import { test } from "node:test";
import type { CID } from "multiformats/cid";
import { nodeReader, type ReadBlock } from "#node/content/dag/reader.ts";
import { alone, type Describing, described } from "#node/content/unixfs/children.ts";
import { entryPages } from "#node/content/unixfs/list.ts";
import { fileSize, isDirectory, type UnixfsNode, unixfsNode } from "#node/content/unixfs/node.ts";
import { openNode } from "#node/content/unixfs/open.ts";
import { parseCid } from "#node/formats/cid/text.ts";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import type { BlockStore } from "#node/storage/blockstore/store.ts";
import { failure } from "#node/util/errors.ts";
import { Trees } from "./trees.ts";

const names = Array.from({ length: 700 }, (_, at) => `file ${String(at).padStart(3, "0")}`);
const files = Object.fromEntries(names.map((name, at) => [`d/${name}`, String(at).padStart(3 + (at % 50))]));
const expected = names.map((name, at) => `${name} File ${3 + (at % 50)}`);

const describing: Describing<string> = {
  unread: () => undefined,
  known: ({ name }, { type, size }) => `${name} ${type} ${size}`,
  read({ name, cid }, bytes) {
    const node = openNode(cid, bytes);
    return `${name} ${node.unixfs.type} ${fileSize(node)}`;
  },
};

interface Listing {
  readonly blocks: BlockService;
  readonly read: ReadBlock;
  readonly all: ReadonlyMap<string, CID>;
  readonly directory: UnixfsNode;
  /** Number of blocks that were requested by `peek`. */
  readonly peeked: { count: number };
  lines(): Promise<string[]>;
}

/** Opens a directory in a store that returns every block at once. */
async function openListing(sharded = false): Promise<Listing> {
  const trees = new Trees();
  const all = await trees.add(files, { sharded });
  const memory = memoryBlocks();
  const peeked = { count: 0 };
  const remove = memory.delete.bind(memory);
  const store: BlockStore & { removals: number } = Object.assign(memory, {
    removals: 1,
    peek(cids: readonly CID[]) {
      peeked.count += cids.length;
      return cids.map((cid) => trees.blocks.get(cid.toString()));
    },
    delete(cids: readonly CID[]) {
      store.removals += 1;
      for (const cid of cids) trees.blocks.delete(cid.toString());
      return remove(cids);
    },
  });
  const blocks = new BlockService(store);
  await blocks.put(Array.from(trees.blocks, ([text, bytes]) => ({ cid: parseCid(text), bytes })));
  const read = nodeReader(blocks, { nameless: true, buffers: blocks.buffers });
  const root = all.get("d") as CID;
  const directory = unixfsNode(root, await read(root)) as UnixfsNode;
  assert.ok(isDirectory(directory));
  const lines = async () => (await Array.fromAsync(described(entryPages(directory, read), read, describing))).flat();
  return { blocks, read, all, directory, peeked, lines };
}

for (const sharded of [false, true]) {
  test(`entries of a ${sharded ? "sharded" : "plain"} directory are read once, and then described from notes`, async () => {
    const { lines, peeked } = await openListing(sharded);
    assert.deepEqual((await lines()).toSorted(), expected);
    const first = peeked.count;
    assert.ok(first >= names.length);
    assert.deepEqual((await lines()).toSorted(), expected);
    const shards = first - names.length;
    // Some entries have the same slot as two others.
    const again = peeked.count - first - shards;
    assert.ok(again <= names.length / 10, `${again} entries were read again`);
  });
}

test("an entry that was removed from the store is reported missing at its position", async () => {
  const { blocks, lines, all, read, directory } = await openListing();
  await lines();
  await blocks.store.delete([all.get("d/file 300") as CID]);
  const before: string[] = [];
  const listing = async () => {
    for await (const page of described(entryPages(directory, read), read, describing)) before.push(...page);
  };
  await assert.rejects(listing(), { code: "NODE_NOT_FOUND" });
  assert.deepEqual(before, expected.slice(0, 300), "all that comes before it");
});

test("a denied entry is not described from notes", async () => {
  const { blocks, lines, all } = await openListing();
  await lines();
  const denied = all.get("d/file 007") as CID;
  const denies = (cid: CID) => cid.equals(denied);
  blocks.denials = {
    denies,
    requireBlock(cid) {
      if (denies(cid)) throw failure("CONTENT_BLOCKED", { path: String(cid) });
    },
  };
  await assert.rejects(lines(), { code: "CONTENT_BLOCKED" });
});

test("notes are not used if each read must be checked, or if other hosts remove blocks", async () => {
  const strict = await openListing();
  strict.blocks.hashOnRead = true;
  assert.deepEqual(await strict.lines(), expected);
  assert.deepEqual(await strict.lines(), expected);
  assert.equal(strict.peeked.count, 0);
  const shared = await openListing();
  const { store } = shared.blocks as { store: { removals?: number | undefined } };
  store.removals = undefined;
  await shared.lines();
  const { count } = shared.peeked;
  await shared.lines();
  assert.equal(shared.peeked.count, 2 * count);
});

test("notes are not shared between CID versions, because a block may be stored under one of them only", async () => {
  const { blocks, all } = await openListing();
  const cid = all.get("d/file 001") as CID;
  assert.equal(cid.version, 0);
  blocks.note(cid, 5);
  assert.equal(blocks.noted(cid, {}), 5);
  assert.equal(blocks.noted(cid.toV1(), {}), undefined);
});

test("links of other blocks are listed as they are, and a malformed block ends the list", async () => {
  const { read, directory, blocks } = await openListing();
  const links = directory.links.slice(0, 3);
  const pages = () => Array.fromAsync(described(alone(links), read, describing));
  assert.deepEqual(await pages(), [expected.slice(0, 3)]);
  const broken = { ...read, peek: () => [new Uint8Array([1])] } as unknown as ReadBlock;
  const slow: ReadBlock = Object.assign(async () => new Uint8Array([1]), { peek: broken.peek as never });
  await assert.rejects(Array.fromAsync(described(alone(links), slow, describing)), { name: "NodeError" });
  assert.ok(blocks.reads.stored > 0);
});
