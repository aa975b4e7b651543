import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { CID } from "multiformats/cid";
import { identity } from "multiformats/hashes/identity";
import type { ReadBlock } from "#node/content/dag/reader.ts";
import { unixfsNode } from "#node/content/unixfs/node.ts";
import { type ReadRange, readFile } from "#node/content/unixfs/read.ts";
import { decodePb, encodePb } from "#node/formats/dag_pb/dag_pb.ts";
import { encodeUnixfs } from "#node/formats/unixfs/format.ts";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { goRandom } from "#test/support/go_random.ts";
import { as, dagPb, raw, sample } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { Trees } from "./trees.ts";

async function readAll(trees: Trees, cid: CID, range?: ReadRange): Promise<Buffer> {
  const root = unixfsNode(cid, await trees.read(cid));
  assert.ok(root);
  const pieces: Uint8Array[] = [];
  for await (const piece of readFile(root, trees.read, range)) pieces.push(piece);
  return Buffer.concat(pieces);
}

const content = goRandom(400_123, 7);

describe("files are read completely and in ranges", () => {
  for (const settings of [{}, { trickle: true }, { rawLeaves: true, version: 1 as const }]) {
    test(JSON.stringify(settings), async () => {
      const trees = new Trees();
      const cid = (await trees.add({ f: content }, settings)).get("f") as CID;
      assert.ok((await readAll(trees, cid)).equals(content));
      const ends = [0, 1, 999, 1000, 1001, 173_999, 174_000, 200_500, 400_122, 400_123];
      for (const offset of ends) {
        for (const length of [0, 1, 1000, 1001, 300_000]) {
          const part = await readAll(trees, cid, { offset, length });
          assert.ok(part.equals(content.subarray(offset, offset + length)), `${length} from ${offset}`);
        }
      }
    });
  }

  test("a range at or beyond the end is empty", async () => {
    const trees = new Trees();
    const cid = (await trees.add({ f: "abc" })).get("f") as CID;
    assert.equal((await readAll(trees, cid, { offset: 3 })).length, 0);
    assert.equal((await readAll(trees, cid, { offset: 30 })).length, 0);
  });
});

test("a directory is rejected by the call, and not later by the iteration", async () => {
  const trees = new Trees();
  const cid = (await trees.add({ "d/f": "abc" })).get("d") as CID;
  const node = unixfsNode(cid, await trees.read(cid));
  assert.ok(node);
  assert.throws(() => readFile(node, trees.read), { code: "IS_DIRECTORY", message: "this dag node is a directory" });
});

test("a range reads only its blocks and a few ahead", async () => {
  const trees = new Trees();
  const cid = (await trees.add({ f: content })).get("f") as CID;
  trees.requested.length = 0;
  await readAll(trees, cid, { offset: 350_000, length: 10 });
  assert.ok(trees.requested.length <= 4, `${trees.requested.length} blocks`);
});

const waited = [
  { blocks: "eight large ones", chunker: "size-262144", size: 4_000_000, most: 10 },
  { blocks: "more small ones", chunker: "size-1000", size: 100_000, most: 100 },
] as const;

for (const { blocks, chunker, size, most } of waited) {
  test(`while a block is waited for, the next ones are requested: ${blocks}`, async () => {
    const trees = new Trees();
    const whole = goRandom(size, 8);
    const cid = (await trees.add({ f: whole }, { chunker })).get("f") as CID;
    const leaves = decodePb(await trees.read(cid)).links.map((link) => String(link.cid));
    const root = unixfsNode(cid, await trees.read(cid));
    assert.ok(root);
    trees.requested.length = 0;
    const first = Promise.withResolvers<void>();
    const slow: ReadBlock = async (wanted) => {
      const block = trees.read(wanted);
      await first.promise;
      return block;
    };
    const reading = Array.fromAsync(readFile(root, slow));
    await setImmediate();
    assert.ok(trees.requested.length >= 9 && trees.requested.length <= most, `${trees.requested.length} blocks`);
    assert.deepEqual(trees.requested.toSorted(), leaves.slice(0, trees.requested.length).toSorted());
    first.resolve();
    assert.ok(Buffer.concat(await reading).equals(whole));
  });
}

for (const settings of [{}, { rawLeaves: true, version: 1 as const }]) {
  test(`while the last block below a node is waited for, those below the next node are requested: ${JSON.stringify(settings)}`, async () => {
    const trees = new Trees();
    const cid = (await trees.add({ f: content }, settings)).get("f") as CID;
    const root = unixfsNode(cid, await trees.read(cid));
    assert.ok(root);
    const leavesBelow = async (index: number) =>
      decodePb(await trees.read(root.links[index]?.cid as CID)).links.map((link) => String(link.cid));
    const below = await leavesBelow(0);
    const next = await leavesBelow(1);
    trees.requested.length = 0;
    const last = Promise.withResolvers<void>();
    const requested = Promise.withResolvers<void>();
    const slow: ReadBlock = async (wanted) => {
      const block = await trees.read(wanted);
      if (String(wanted) === below.at(-1)) await last.promise;
      if (String(wanted) === next[7]) requested.resolve();
      return block;
    };
    const reading = Array.fromAsync(readFile(root, slow));
    await requested.promise;
    last.resolve();
    assert.ok(Buffer.concat(await reading).equals(content));
    assert.equal(new Set(trees.requested).size, trees.requested.length, "each once");
  });
}

describe("large blocks in memory", () => {
  const size = 4_000_000;

  async function sample() {
    const trees = new Trees();
    const whole = goRandom(size, 9);
    const cid = (await trees.add({ f: whole }, { chunker: "size-262144" })).get("f") as CID;
    const bytes = await trees.read(cid);
    const leaves = await Promise.all(decodePb(bytes).links.map((link) => trees.read(link.cid)));
    return { whole, root: unixfsNode(cid, bytes), leaves, links: decodePb(bytes).links };
  }

  test("are read one ahead of the reader", async () => {
    const { whole, root, leaves, links } = await sample();
    assert.ok(root);
    let requested = 0;
    const read: ReadBlock = Object.assign(() => Promise.reject(new Error("asked for a promise")), {
      soon(wanted: CID): Uint8Array {
        requested += 1;
        return leaves[links.findIndex(({ cid }) => cid.equals(wanted))] as Uint8Array;
      },
    });
    const pieces: Uint8Array[] = [];
    for await (const piece of readFile(root, read)) {
      pieces.push(piece);
      assert.ok(requested <= pieces.length + 1, `${requested} blocks for ${pieces.length} pieces`);
    }
    assert.ok(Buffer.concat(pieces).equals(whole));
  });

  test("report a failure of readahead when the turn of the block comes", async () => {
    const { root, leaves, links } = await sample();
    assert.ok(root);
    const read: ReadBlock = Object.assign(() => Promise.reject(new Error("asked for a promise")), {
      soon(wanted: CID): Uint8Array {
        const index = links.findIndex(({ cid }) => cid.equals(wanted));
        if (index === 2) throw new Error("denied");
        return leaves[index] as Uint8Array;
      },
    });
    let pieces = 0;
    const reading = (async () => {
      for await (const _ of readFile(root, read)) pieces += 1;
    })();
    await assert.rejects(reading, /denied/);
    assert.equal(pieces, 2);
  });
});

test("blocks are requested together even in a file of many subtrees", async () => {
  const trees = new Trees();
  const whole = goRandom(2_000_000, 9);
  const cid = (await trees.add({ f: whole })).get("f") as CID;
  const root = unixfsNode(cid, await trees.read(cid));
  assert.ok(root && root.links.length === 12);
  let turns = 0;
  let turn: Promise<void> | undefined;
  const slow: ReadBlock = async (wanted) => {
    turn ??= setImmediate().then(() => {
      turns += 1;
      turn = undefined;
    });
    await turn;
    return trees.read(wanted);
  };
  assert.ok(Buffer.concat(await Array.fromAsync(readFile(root, slow))).equals(whole));
  assert.ok(turns < 100, `${turns} turns for 2000 blocks`);
});

test("a reader that stops ends the walk", async () => {
  const trees = new Trees();
  const cid = (await trees.add({ f: goRandom(2_000_000, 9) })).get("f") as CID;
  const root = unixfsNode(cid, await trees.read(cid));
  assert.ok(root);
  trees.requested.length = 0;
  for await (const _ of readFile(root, trees.read)) break;
  assert.ok(trees.requested.length < 300, `${trees.requested.length} blocks of 2012`);
});

test("bytes before a missing block are yielded, and then the failure", async () => {
  const trees = new Trees();
  const cid = (await trees.add({ f: content.subarray(0, 5000) })).get("f") as CID;
  const links = decodePb(await trees.read(cid)).links;
  trees.blocks.delete(String(links[3]?.cid));
  const root = unixfsNode(cid, await trees.read(cid));
  assert.ok(root);
  const pieces: Uint8Array[] = [];
  await assert.rejects(
    async () => {
      for await (const piece of readFile(root, trees.read)) pieces.push(piece);
    },
    { message: "merkledag: not found" },
  );
  assert.ok(Buffer.concat(pieces).equals(content.subarray(0, 3000)));
});

test("released pieces affect neither the links of a node nor later blocks", async () => {
  const leaves = Array.from({ length: 600 }, (_, at) => (at % 2 === 0 ? sample(at, 20_000) : inlined(at)));
  const links = leaves.map(({ cid }) => ({ cid, name: "", size: 1 }));
  const blocksizes = leaves.map(({ bytes }) => bytes.length);
  const filesize = blocksizes.reduce((sum, size) => sum + size, 0);
  const parent = encodePb({ data: encodeUnixfs({ type: "File", filesize, blocksizes }), links });
  const stored = new Map(leaves.map(({ cid, bytes }) => [String(cid), bytes]));
  const buffers = new BufferPool();
  const read: ReadBlock = async (cid) => {
    if (cid.multihash.code === 0) return cid.multihash.digest;
    const bytes = stored.get(String(cid));
    assert.ok(bytes, `${cid} is asked for`);
    const into = buffers.take(bytes.length);
    into.set(bytes);
    return into;
  };
  const block = buffers.take(parent.length);
  block.set(parent);
  const root = unixfsNode(as(sample(1).cid, dagPb), block);
  assert.ok(root);
  assert.ok(parent.length > 20_000, "it is long enough to be lent");
  const pieces: Buffer[] = [];
  for await (const piece of readFile(root, read, { buffers })) {
    pieces.push(Buffer.from(piece));
    buffers.release(piece);
    // Another user takes all free buffers and overwrites them.
    const taken = Array.from({ length: 20 }, () => buffers.take(60_000).fill(0xff));
    for (const other of taken) buffers.release(other);
  }
  assert.ok(Buffer.concat(pieces).equals(Buffer.concat(leaves.map(({ bytes }) => bytes))));
});

function inlined(seed: number) {
  const { bytes } = sample(seed, 20);
  return { cid: CID.createV1(raw, identity.digest(bytes)), bytes };
}

describe("a file whose node does not have the sizes of its links", () => {
  const link = (name: string, block: { cid: CID; bytes: Uint8Array }) => ({
    name,
    size: block.bytes.length,
    cid: block.cid,
  });

  async function linked(data: string, blocksizes: readonly number[], children: readonly string[]) {
    const leaves = children.map((text) => {
      const bytes = Buffer.from(text);
      return { bytes, cid: CID.createV1(raw, identity.digest(bytes)) };
    });
    const own = encodeUnixfs({ type: "File", data: Buffer.from(data), filesize: data.length, blocksizes });
    const bytes = encodePb({ data: own, links: leaves.map((leaf, at) => link(`${at}`, leaf)) });
    const root = unixfsNode(CID.createV1(dagPb, identity.digest(bytes)), bytes);
    assert.ok(root);
    const read: ReadBlock = async ({ multihash }) => multihash.digest;
    return async (range?: ReadRange) => String(Buffer.concat(await Array.fromAsync(readFile(root, read, range))));
  }

  test("yields the bytes of its leaves only, whatever size it claims", async () => {
    assert.equal(await (await linked("root file", [], ["child file"]))(), "child file");
    assert.equal(await (await linked("", [], ["child", " ", "file"]))(), "child file");
    assert.equal(await (await linked("", [5], ["child", " file"]))(), "child file");
    assert.equal(await (await linked("", [], ["child", " file"]))({ length: 7 }), "child f");
  });

  test("cannot be read from an offset", async () => {
    const message = "file does not support seeking";
    await assert.rejects((await linked("root file", [], ["child file"]))({ offset: 2, length: 4 }), { message });
  });
});
