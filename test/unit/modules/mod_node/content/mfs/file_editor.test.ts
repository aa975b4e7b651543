import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { addSettings } from "#node/content/adder/settings.ts";
import { addTree } from "#node/content/unixfs/add.ts";
import { multihash, sha256 } from "#node/formats/cid/hashes.ts";
import { encodeDagPb } from "#node/formats/dag_pb/pb_object.ts";
import { parseChunker } from "#node/formats/unixfs/chunker/parse.ts";
import { encodeUnixfs } from "#node/formats/unixfs/format.ts";
import { pieces, TestNamespace } from "./test_namespace.ts";

interface Write {
  readonly offset: number;
  readonly length: number;
  readonly truncate?: boolean;
  readonly cid: string;
  readonly size: number;
  readonly total: number;
}

interface Case {
  readonly name: string;
  readonly add?: {
    readonly length: number;
    readonly chunker?: string;
    readonly trickle?: boolean;
    readonly "raw-leaves"?: boolean;
  };
  readonly version?: number;
  readonly writes: readonly Write[];
}

const recorded = new URL("../../../../../fixtures/node/file_edits.json", import.meta.url);
const { cases }: { cases: readonly Case[] } = JSON.parse(readFileSync(recorded, "utf8"));

/** The content of the recorded calls. */
const content = (length: number, seed: number): Buffer =>
  Buffer.from(Uint8Array.from({ length }, (_, at) => at * 7 + seed * 13 + (at >> 8)));

/** Returns the expected content of a file after a write. */
function written(before: Buffer, offset: number, bytes: Buffer): Buffer {
  const after = Buffer.alloc(Math.max(before.length, offset, bytes.length === 0 ? 0 : offset + bytes.length));
  before.copy(after);
  bytes.copy(after, offset);
  return after;
}

async function added(mfs: TestNamespace, { length, ...options }: NonNullable<Case["add"]>): Promise<Buffer> {
  const bytes = content(length, 0);
  const settings = addSettings({
    chunker: options.chunker,
    trickle: options.trickle,
    rawLeaves: options["raw-leaves"],
  });
  const entries = (async function* () {
    yield { path: "f", kind: "file" as const, body: pieces(bytes) };
  })();
  const put = (block: Parameters<typeof mfs.blocks.put>[0][number]) => mfs.blocks.put([block]);
  for await (const { built } of addTree(entries, settings, put)) if (built !== undefined) await mfs.cp(built.cid, "/f");
  return bytes;
}

for (const { name, add, version, writes } of cases) {
  test(`the blocks equal the reference's: ${name}`, async () => {
    const mfs = new TestNamespace();
    let expected = add === undefined ? Buffer.alloc(0) : await added(mfs, add);
    if (version !== undefined) await mfs.chcid("/", { version });
    for (const [at, { offset, length, truncate = false, cid, size, total }] of writes.entries()) {
      const bytes = content(length, at + 1);
      await mfs.write("/f", bytes, { offset, truncate });
      const stat = await mfs.stat("/f");
      assert.deepEqual([String(stat.cid), stat.size, stat.cumulativeSize], [cid, size, total]);
      expected = written(truncate ? Buffer.alloc(0) : expected, offset, bytes);
      assert.ok((await mfs.bytes("/f")).equals(expected), "the file holds what was written");
    }
  });
}

test("writes that the reference rejects or gets wrong succeed: into a raw block that grows, and into bytes before parts", async () => {
  for (const options of [{ "raw-leaves": true }, {}]) {
    const mfs = new TestNamespace();
    let expected = await added(mfs, { length: 100, ...options });
    const writes: [offset: number, length: number][] = [
      [90, 50],
      [20, 100],
      [0, 10],
      [300, 5],
    ];
    for (const [at, [offset, length]] of writes.entries()) {
      const bytes = content(length, at + 5);
      await mfs.write("/f", bytes, { offset });
      expected = written(expected, offset, bytes);
      assert.ok((await mfs.bytes("/f")).equals(expected));
    }
    await mfs.write("/f", "", { truncate: true });
    assert.equal((await mfs.stat("/f")).size, 0);
    await mfs.write("/f", "short");
    assert.equal(await mfs.read("/f"), "short");
  }
});

test("a change does not modify the old block, even if its bytes are a Buffer", async () => {
  const mfs = new TestNamespace();
  const bytes = content(100, 0);
  const cid = CID.createV1(0x55, await multihash(sha256, bytes));
  await mfs.blocks.put([{ cid, bytes }]);
  await mfs.cp(cid, "/f");
  await mfs.write("/f", "changed", { offset: 10 });
  assert.deepEqual(await mfs.store.get(cid), content(100, 0));
});

test("a file with changes at many offsets contains what was written", async () => {
  const mfs = new TestNamespace();
  let expected: Buffer = Buffer.alloc(0);
  let state = 5;
  const random = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state % below;
  };
  for (let round = 0; round < 60; round += 1) {
    const truncate = random(15) === 0;
    if (truncate) expected = Buffer.alloc(0);
    const offset = random(expected.length + 20_000);
    const bytes = content(random(30_000), round);
    await mfs.write("/f", bytes, { offset, truncate });
    expected = written(expected, offset, bytes);
    assert.ok((await mfs.bytes("/f")).equals(expected), `round ${round}`);
  }
});

test("a file that claims more bytes than its parts have is rejected, even if few blocks claim it very often", async () => {
  const mfs = new TestNamespace();
  const put = async (code: number, bytes: Uint8Array) => {
    const cid = CID.createV1(code, await multihash(sha256, bytes));
    await mfs.blocks.put([{ cid, bytes }]);
    return cid;
  };
  let cid = await put(0x55, new Uint8Array());
  let filesize = 100;
  for (let level = 0; level < 33; level += 1) {
    const blocksizes = [filesize, filesize];
    filesize *= 2;
    const Data = encodeUnixfs({ type: "File", filesize, blocksizes });
    cid = await put(0x70, encodeDagPb({ Data, Links: blocksizes.map(() => ({ Name: "", Hash: cid, Tsize: 1 })) }));
  }
  await mfs.cp(cid, "/f");
  for (const offset of [0, 2 ** 33]) {
    await assert.rejects(mfs.write("/f", Buffer.from("x"), { offset }), /cannot be changed: .+ has 0 bytes, not 100/);
  }
  assert.ok((await mfs.stat("/f")).cid.equals(cid));
});

test("appended content is split by the given chunker, and a gap is not", async () => {
  const mfs = new TestNamespace();
  const write = async (path: string, length: number, chunker: string, offset = 0) => {
    await mfs.write(path, content(length, 0), { offset, chunker: parseChunker(chunker) });
    return String(await mfs.cid(path));
  };
  assert.equal(await write("/a", 250, "size-100"), "QmWw1Kmf7te4cQSGa5YSz1vuhqdW23H3RvqMSdLriqZLxw");
  assert.equal(await write("/a", 30, "size-100", 250), "QmQsLWrUK1Fb63CePaaLiiBF6UuuE9WrxTNdwEak8vZ2YD");
  assert.equal(await write("/gap", 50, "size-100", 500), "QmbZzjWXRu8YJx53qJw5kzZK6bviWCPPvjLijJydWLmV4r");
  assert.equal(await write("/b", 2000, "rabin-64-128-256"), "QmSuSFHxWb2gT8pMXV2NZfPFjK7CcY1hwhjdJLzu6T4Mcs");
});
