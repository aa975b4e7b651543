import assert from "node:assert/strict";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { exportPath } from "#node/content/car/export_path.ts";
import { walk } from "#node/content/dag/walk.ts";
import { resolvePath } from "#node/content/resolver/resolve.ts";
import { unixfsNode } from "#node/content/unixfs/node.ts";
import { type ReadRange, readFile } from "#node/content/unixfs/read.ts";
import { dagCbor, dagPb, raw } from "#node/formats/cid/codecs.ts";
import { multihash, sha256 } from "#node/formats/cid/hashes.ts";
import { encodePb } from "#node/formats/dag_pb/dag_pb.ts";
import { encodeUnixfs } from "#node/formats/unixfs/format.ts";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";

/** Reads blocks into buffers of a pool. Released buffers are overwritten at once. */
class Blocks {
  readonly buffers = new BufferPool();
  readonly #blocks = new Map<string, Uint8Array>();

  async put(bytes: Uint8Array, codec: number = raw): Promise<CID> {
    const cid = CID.createV1(codec, await multihash(sha256, bytes));
    this.#blocks.set(String(cid), bytes);
    return cid;
  }

  /** Builds a file whose node has bytes of its own. */
  node(own: Uint8Array, parts: readonly (readonly [CID, number])[]): Promise<CID> {
    const blocksizes = parts.map(([, size]) => size);
    const filesize = blocksizes.reduce((sum, size) => sum + size, own.length);
    const data = encodeUnixfs({ type: "File", data: own, filesize, blocksizes });
    return this.put(encodePb({ data, links: parts.map(([cid, size]) => ({ name: "", size, cid })) }), dagPb);
  }

  readonly plain = async (cid: CID): Promise<Uint8Array> => this.#blocks.get(String(cid)) as Uint8Array;

  readonly read = async (cid: CID): Promise<Uint8Array> => {
    const bytes = await this.plain(cid);
    const into = this.buffers.take(bytes.length);
    into.set(bytes);
    return into;
  };

  /** Returns a copy of a piece, and overwrites the memory of a large one. */
  taken(piece: Uint8Array): Buffer {
    const copy = Buffer.from(piece);
    if (piece.buffer.byteLength >= 128 * 1024) {
      new Uint8Array(piece.buffer).fill(0xee);
      this.buffers.release(piece);
    }
    return copy;
  }
}

/**
 * Two levels of nodes with 100 KiB of their own. The lower one has more parts than are expanded at
 * a time.
 */
async function largeNodes(blocks: Blocks): Promise<{ root: CID; inner: CID; content: Buffer }> {
  const text = Buffer.from(Array.from({ length: 1300 }, (_, at) => String(at).padStart(8, "0")).join(""));
  const leaves: [CID, number][] = [];
  for (let at = 0; at < text.length; at += 8) leaves.push([await blocks.put(text.subarray(at, at + 8)), 8]);
  const own = Buffer.alloc(100 * 1024, "i");
  const inner = await blocks.node(own, leaves);
  const head = Buffer.alloc(100 * 1024, "r");
  const root = await blocks.node(head, [[inner, own.length + text.length]]);
  return { root, inner, content: Buffer.concat([head, own, text]) };
}

async function contentOf(blocks: Blocks, cid: CID, range: ReadRange): Promise<Buffer> {
  const file = unixfsNode(cid, await blocks.plain(cid));
  assert.ok(file);
  const pieces: Buffer[] = [];
  for await (const piece of readFile(file, blocks.read, { ...range, buffers: blocks.buffers }))
    pieces.push(blocks.taken(piece));
  return Buffer.concat(pieces);
}

test("a file is read to its end though large nodes are released before their parts are read", async () => {
  const blocks = new Blocks();
  const { root, content } = await largeNodes(blocks);
  for (const range of [{}, { offset: 150_000 }, { offset: 209_000, length: 1000 }]) {
    const { offset = 0, length = content.length } = range as ReadRange;
    const expected = content.subarray(offset, offset + length);
    assert.ok((await contentOf(blocks, root, range)).equals(expected), JSON.stringify(range));
  }
});

test("a walk continues below large nodes that were released", async () => {
  const blocks = new Blocks();
  const { root, inner } = await largeNodes(blocks);
  const found: string[] = [];
  for await (const { cid, bytes } of walk(root, { read: blocks.read, buffers: blocks.buffers })) {
    found.push(String(cid));
    blocks.taken(bytes as Uint8Array);
  }
  assert.equal(found.length, 1302);
  assert.equal(found[1], String(inner));
});

for (const options of [{}, { duplicates: true }, { scope: "block" }, { scope: "entity" }] as const) {
  test(`an archive contains large nodes completely, and releases them on the way: ${JSON.stringify(options)}`, async () => {
    const blocks = new Blocks();
    const { root } = await largeNodes(blocks);
    const archived = async (pooled?: { read: Blocks["read"]; buffers: BufferPool }) => {
      const pieces: Buffer[] = [];
      const { archive } = await exportPath(root, [], blocks.plain, { ...options, pooled });
      for await (const piece of archive) pieces.push(pooled ? blocks.taken(piece) : Buffer.from(piece));
      return Buffer.concat(pieces);
    };
    const { read, buffers } = blocks;
    assert.ok((await archived({ read, buffers })).equals(await archived()));
  });
}

test("a path into a large document does not block other work", async () => {
  const blocks = new Blocks();
  const depth = 900_000;
  const cid = await blocks.put(Buffer.alloc(depth, 0x81).fill(0x80, depth - 1), dagCbor);
  let turns = 0;
  let isOver = false;
  const turn = () => {
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const segments = ["0", "0", "0"];
  const path = { namespace: "ipfs", root: String(cid), segments, text: `/ipfs/${cid}/0/0/0` } as const;
  const { remainder } = await resolvePath(path, blocks.plain);
  isOver = true;
  assert.deepEqual(remainder, segments);
  assert.ok(turns > 5, `${turns} turns`);
});
