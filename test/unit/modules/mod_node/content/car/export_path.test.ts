import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { exportPath, type PathArchiveOptions } from "#node/content/car/export_path.ts";
import { multihash, sha256 } from "#node/formats/cid/hashes.ts";
import { encodeDagPb } from "#node/formats/dag_pb/pb_object.ts";
import { encodeUnixfs } from "#node/formats/unixfs/format.ts";
import { failure } from "#node/util/errors.ts";
import { blocksIn } from "#test/support/car_blocks.ts";

const folder = new URL("../../../../../fixtures/gateway/", import.meta.url);
const { cids } = JSON.parse(readFileSync(new URL("fixtures.json", folder), "utf8")) as { cids: Record<string, string> };
const blocks = new Map(
  blocksIn(readFileSync(new URL("fixtures.car", folder))).map(({ cid, bytes }) => [String(cid), bytes]),
);
const cidOf = (name: string) => CID.parse(cids[name] as string);

/** Returns the CIDs of the blocks in the archive, and those of the blocks that were read. */
async function archived(root: string, names: readonly string[], options: PathArchiveOptions = {}) {
  const requested: string[] = [];
  const read = async (cid: CID) => {
    requested.push(String(cid));
    const bytes = cid.multihash.code === 0 ? cid.multihash.digest : blocks.get(String(cid));
    if (bytes === undefined) throw failure("NODE_NOT_FOUND");
    return bytes;
  };
  const { archive, roots } = await exportPath(cidOf(root), names, read, options);
  const pieces = await Array.fromAsync(archive);
  return { sent: blocksIn(Buffer.concat(pieces)).map(({ cid }) => String(cid)), requested, roots: roots.map(String) };
}

/** Returns the positions of the sent leaves, in a file with leaves of 1,024 bytes. */
async function leavesSent(from: number, to: number | undefined) {
  const all = (await archived("bigfile", [])).sent;
  const { sent, requested } = await archived("bigfile", [], { scope: "entity", range: { from, to } });
  assert.equal(sent[0], cids.bigfile);
  assert.deepEqual([...new Set(requested)].sort(), [...sent].sort(), "nothing else is read");
  return sent.slice(1).map((cid) => all.indexOf(cid));
}

test("a range of a file contains the leaves that it touches, counted from either end", async () => {
  const cases: [from: number, to: number | undefined, leaves: number[]][] = [
    [0, 1023, [1]],
    [1000, 1100, [1, 2]],
    [2048, 2048, [3]],
    [4096, undefined, [5]],
    [-10, undefined, [5]],
    [-2000, -1500, [3, 4]],
    [4000, 9000, [4, 5]],
    [-9000, 10, [1]],
    [9000, 9999, []],
  ];
  for (const [from, to, leaves] of cases) assert.deepEqual(await leavesSent(from, to), leaves, `${from}:${to}`);
});

/** Builds a file of these leaves. */
async function fileOf(leaves: readonly Uint8Array[]) {
  const made = new Map<string, Uint8Array>();
  const put = async (codec: number, bytes: Uint8Array) => {
    const cid = CID.createV1(codec, await multihash(sha256, bytes));
    made.set(String(cid), bytes);
    return cid;
  };
  const links = [];
  for (const leaf of leaves) links.push({ Name: "", Hash: await put(0x55, leaf), Tsize: leaf.length });
  const blocksizes = leaves.map(({ length }) => length);
  const filesize = blocksizes.reduce((sum, size) => sum + size, 0);
  const cid = await put(
    0x70,
    encodeDagPb({ Data: encodeUnixfs({ type: "File", filesize, blocksizes }), Links: links }),
  );
  return { cid, blocks: made };
}

test("an archive of a path begins with its blocks, including inner shards", async () => {
  const { sent, roots } = await archived("shard", ["entry-17.txt"], { scope: "block" });
  assert.equal(sent[0], cids.shard);
  assert.ok(sent.length > 2, "the shards on the way are there");
  assert.equal(sent.at(-1), roots.at(-1));
  assert.equal(roots.length, 2);
});

test("the scope entity of a directory contains all its shards, and none of its entries", async () => {
  assert.deepEqual((await archived("site", [], { scope: "entity" })).sent, [cids.site]);
  const { sent } = await archived("shard", [], { scope: "entity" });
  const all = (await archived("shard", [])).sent;
  assert.equal(all.length - sent.length, 24);
  assert.deepEqual(
    sent,
    all.filter((cid) => sent.includes(cid)),
  );
});

test("a block that is linked several times is sent once, or each time with duplicates", async () => {
  const once = (await archived("dup", [])).sent;
  const often = (await archived("dup", [], { duplicates: true })).sent;
  assert.equal(new Set(once).size, once.length);
  assert.deepEqual([once.length, often.length], [3, 5]);
});

test("a range with a repeated block sends it once, or each time with duplicates", async () => {
  const leaf = new Uint8Array(10).fill(1);
  const twice = await fileOf([leaf, leaf, new Uint8Array(10)]);
  const sizes = async (duplicates: boolean) => {
    const options = { scope: "entity", range: { from: 0, to: 19 }, duplicates } as const;
    const { archive } = await exportPath(
      twice.cid,
      [],
      async (cid) => twice.blocks.get(String(cid)) as Uint8Array,
      options,
    );
    return blocksIn(Buffer.concat(await Array.fromAsync(archive))).length;
  };
  assert.deepEqual([await sizes(false), await sizes(true)], [2, 3]);
});

test("blocks of identity CIDs are not sent, and a block of an unknown codec has no links", async () => {
  assert.deepEqual((await archived("inline", [])).sent, []);
  assert.deepEqual((await archived("json", [])).sent, [cids.json]);
});

test("a missing root is reported at once, and a missing child after the blocks before it", async () => {
  await assert.rejects(archived("missing", []), { code: "NODE_NOT_FOUND" });
  await assert.rejects(archived("holes", []), { code: "NODE_NOT_FOUND" });
  await assert.rejects(archived("site", ["absent"]), { code: "NO_LINK" });
});

test("blocks of a long path do not stay in memory until the archive is read", async () => {
  const mebibyte = 2 ** 20;
  const stored = new Map<string, Uint8Array>();
  const put = async (bytes: Uint8Array) => {
    const cid = CID.createV1(0x70, await multihash(sha256, bytes));
    stored.set(String(cid), bytes);
    return cid;
  };
  const directory = (Hash: CID | undefined, data?: Uint8Array) =>
    put(
      encodeDagPb({
        Data: encodeUnixfs({ type: "Directory", data }),
        Links: Hash === undefined ? [] : [{ Name: "a", Hash, Tsize: 0 }],
      }),
    );
  let root = await directory(undefined);
  for (let level = 0; level < 4; level += 1) root = await directory(root, new Uint8Array(mebibyte).fill(level));
  const requested: string[] = [];
  const read = async (cid: CID) => {
    requested.push(String(cid));
    return stored.get(String(cid)) as Uint8Array;
  };
  const { archive, roots } = await exportPath(root, ["a", "a", "a", "a"], read, { scope: "block" });
  // Each block was read to follow the path, and the CIDs are not views of the blocks.
  assert.equal(requested.length, 5);
  for (const { bytes } of roots.slice(1)) assert.ok(bytes.buffer.byteLength < mebibyte, `${bytes.buffer.byteLength}`);
  const sent = blocksIn(Buffer.concat(await Array.fromAsync(archive)));
  assert.deepEqual(
    sent.map(({ cid }) => String(cid)),
    roots.map(String),
  );
  assert.equal(requested.length, 9);
});
