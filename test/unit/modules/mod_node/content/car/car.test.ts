import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { CarReader, CarWriter } from "@ipld/car";
import * as dagCbor from "@ipld/dag-cbor";
import { CID } from "multiformats/cid";
import { identity } from "multiformats/hashes/identity";
import { sha256 } from "multiformats/hashes/sha2";
import { exportCar } from "#node/content/car/export.ts";
import { importCar } from "#node/content/car/import.ts";
import { nodeReader } from "#node/content/dag/reader.ts";
import { encodePb } from "#node/formats/dag_pb/dag_pb.ts";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import type { Block, BlockStore } from "#node/storage/blockstore/store.ts";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const unhex = (text: string) => new Uint8Array(Buffer.from(text, "hex"));

async function raw(bytes: Uint8Array): Promise<Block> {
  return { cid: CID.createV1(0x55, await sha256.digest(bytes)), bytes };
}

async function cbor(value: unknown): Promise<Block> {
  const bytes = dagCbor.encode(value);
  return { cid: CID.createV1(0x71, await sha256.digest(bytes)), bytes };
}

/**
 * A tree with three codecs: with a block inside a CID, a block of version 0, and a block that is
 * linked twice.
 */
async function tree(): Promise<[Block, Block, Block, Block, Block]> {
  const small = await raw(Buffer.from("small"));
  const large = await raw(randomBytes(200_000));
  const inside = Buffer.from("inside");
  const inlined = { cid: CID.createV1(0x55, identity.digest(inside)), bytes: inside };
  const pbBytes = encodePb({ data: Buffer.from("pb"), links: [{ name: "l", size: 5, cid: small.cid }] });
  const pb = { cid: CID.createV0(await sha256.digest(pbBytes)), bytes: pbBytes };
  const root = await cbor({ a: pb.cid, b: [large.cid, inlined.cid], c: small.cid });
  return [root, pb, small, large, inlined];
}

async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size);
}

async function written(roots: CID[], blocks: readonly Block[]): Promise<Uint8Array> {
  const { writer, out } = CarWriter.create(roots);
  const collected = Array.fromAsync(out);
  for (const block of blocks) await writer.put(block);
  await writer.close();
  return Buffer.concat(await collected);
}

const emptyNode = () => new BlockService(memoryBlocks());
const rootOf = ([root]: readonly Block[]) => (root as Block).cid;

test("@ipld/car reads an exported archive: parents before children, each block once", async () => {
  const blocks = await tree();
  const node = emptyNode();
  await node.put(blocks);
  const car = Buffer.concat(await Array.fromAsync(exportCar(rootOf(blocks), nodeReader(node))));
  const reader = await CarReader.fromBytes(car);
  assert.deepEqual((await reader.getRoots()).map(String), [String(rootOf(blocks))]);
  const found = await Array.fromAsync(reader.blocks());
  assert.deepEqual(
    found.map(({ cid, bytes }) => [String(cid), hex(bytes).slice(0, 40)]),
    blocks.map(({ cid, bytes }) => [String(cid), hex(bytes).slice(0, 40)]),
  );
  assert.equal(hex(car), hex(await written([rootOf(blocks)], blocks)));
});

test("an archive of @ipld/car is imported, however it is split into pieces", async () => {
  const blocks = await tree();
  const car = await written([rootOf(blocks)], blocks);
  for (const size of [1, 7, 1000, 65536, car.length]) {
    const node = emptyNode();
    assert.deepEqual((await importCar(node, pieces(car, size))).map(String), [String(rootOf(blocks))]);
    for (const { cid, bytes } of blocks)
      assert.ok(Buffer.from(bytes).equals((await node.find(cid)) ?? Buffer.alloc(0)), `${cid}`);
    assert.equal(await node.store.has(blocks[4].cid), false, "what is in its CID is not stored");
  }
});

test("pieces may be Buffers whose memory is reused", async () => {
  const blocks = await tree();
  const car = await written([rootOf(blocks)], blocks);
  for (const size of [1, 7, 1000]) {
    const memory = Buffer.alloc(size);
    const reused = async function* () {
      for (let at = 0; at < car.length; at += size) {
        const piece = memory.subarray(0, Math.min(size, car.length - at));
        piece.set(car.subarray(at, at + piece.length));
        yield piece;
      }
    };
    const node = emptyNode();
    assert.deepEqual((await importCar(node, reused())).map(String), [String(rootOf(blocks))]);
    for (const { cid, bytes } of blocks)
      assert.ok(Buffer.from(bytes).equals((await node.find(cid)) ?? Buffer.alloc(0)), `${cid}`);
  }
});

test("an archive that is truncated anywhere is rejected, and no wrong block is stored", async () => {
  const blocks = (await tree()).filter(({ bytes }) => bytes.length < 1000);
  const car = await written([rootOf(blocks)], blocks);
  let ends = 0;
  for (let length = 1; length < car.length; length += 1) {
    const node = emptyNode();
    try {
      await importCar(node, pieces(car.subarray(0, length), 64));
      // At the boundary between two blocks, nothing shows that the archive is incomplete.
      ends += 1;
    } catch (error) {
      assert.match(String(error), /^NodeError: (invalid header: )?(unexpected )?EOF$/, `${length}`);
    }
    for await (const cid of node.store.keys()) assert.ok(blocks.some((block) => block.cid.equals(cid)));
  }
  assert.equal(ends, blocks.length);
});

test("a block whose bytes do not match its CID is rejected, and the error names it", async () => {
  const [root, , small, large] = await tree();
  for (const { cid, bytes } of [small, large]) {
    const wrong = bytes.slice();
    wrong[0] = (wrong[0] as number) ^ 1;
    const car = await written([root.cid], [root, { cid, bytes: wrong }]);
    const data = (await raw(wrong)).cid;
    const node = emptyNode();
    await assert.rejects(importCar(node, pieces(car, 1000)), {
      message: `mismatch in content integrity, name: ${cid}, data: ${data}`,
    });
    assert.equal(await node.has(cid), false);
  }
});

const hello = "015512202cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
const link = `d82a582500${hello}`;
const roots = `65726f6f747381${link}`;
const version = "6776657273696f6e01";
const header = `a2${roots}${version}`;
const section = (text: string): string => {
  const length = text.length / 2;
  return (length < 128 ? [length] : [(length % 128) | 128, length >> 7])
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .concat(text)
    .join("");
};

/**
 * The texts of the reference. Where the reference reports nothing, or crashes, the texts are our
 * own.
 */
const refused: Readonly<Record<string, string>> = {
  "00": "invalid header: EOF",
  [section("a16776657273696f6e02")]: "invalid car version: 2",
  [section("a165726f6f747380")]: "invalid car version: 0",
  [section("f6")]: "invalid car version: 0",
  [section(`a265726f6f747380${version}`)]: "empty car, no roots",
  [section(`a265726f6f7473f6${version}`)]: "empty car, no roots",
  [section("a265726f6f747380616201")]:
    'invalid header: unmarshal error: stream contains key "b", but there\'s no such field in structs of type car.CarHeader',
  [section("a165726f6f747301")]:
    "invalid header: malformed stream: invalid appearance of uint token; expected start of array",
  [section("a165726f6f74738101")]: "invalid header: unmarshal error: cannot assign <u:1> to slice field",
  [section("a165726f6f747381f6")]: "invalid header: link value was empty",
  [section("a16776657273696f6e6161")]: 'invalid header: unmarshal error: cannot assign <s:"a"> to uint64 field',
  [section("a16776657273696f6e20")]: "invalid header: unmarshal error: cannot assign <i:-1> to uint64 field",
  [section("80")]: "invalid header: malformed stream: invalid appearance of array open token; expected start of map",
  [section("01020304")]: "invalid header: malformed stream: invalid appearance of uint token; expected start of map",
  [section("a10101")]: "invalid header: malformed stream: invalid appearance of uint token; expected map key",
  [section("a2")]: "invalid header: EOF",
  [section("ff")]: "invalid header: Invalid majorByte: 0xff",
  "3aa265726f6f7473": "unexpected EOF",
  ffffffffffffffffffff01: "binary: varint overflows a 64-bit integer",
  ffffffffff7f: "invalid car: a section of 4398046511103 bytes is longer than 134217728",
  [`${section(header)}80`]: "unexpected EOF",
  [`${section(header)}ffffffffffffffffffff01`]: "binary: varint overflows a 64-bit integer",
  [`${section(header)}ffffffffff7f6162`]: "invalid car: a section of 4398046511103 bytes is longer than 134217728",
  [`${section(header)}00`]: "unexpected EOF",
  [`${section(header)}0101`]: "unexpected EOF",
  [`${section(header)}0412201234`]: "unexpected EOF",
  [`${section(header)}0401551220`]: "unexpected EOF",
  [section(header) + section(`02${hello.slice(2)}`)]: "invalid cid version number",
  [section(header) + section(`01a902${hello.slice(4)}68656c6c6f`)]:
    "invalid character 'h' looking for beginning of value",
  [section(header) + section(`0178${hello.slice(4)}68656c6c6f`)]: "unrecognized object type: 120",
  [section(header) + section(`0170${hello.slice(4)}68656c6c6f`)]:
    "failed to decode Protocol Buffers: incorrectly formatted merkledag node: unmarshal failed. proto: PBNode: wiretype end group for non-group",
  [section(header) + section(`0171${hello.slice(4)}68656c6c6f`)]: "unexpected EOF",
  [section(header) + section("0155ff0104deadbeef68656c6c6f")]:
    "unknown multihash code 255 (0xff): no such hash registered",
  [section(header) + section("0155d501105d41402abc4b2a76b9719d911017c59268656c6c6f")]:
    "potentially insecure hash functions not allowed",
  [section(header) + section("015512042cf24dba68656c6c6f")]: "hashes must be at 20 least bytes long",
  [section(header) + section("0155000568656c6c6f68656c6c70")]:
    "mismatch in content integrity, name: bafkqablimvwgy3y, data: bafkqablimvwgy4a",
};

test("an invalid archive is rejected with the reference's text", async () => {
  for (const [given, message] of Object.entries(refused)) {
    for (const size of [1, 1000]) {
      const importing = importCar(emptyNode(), pieces(unhex(given), size), { rules: "0.9" });
      await assert.rejects(importing, { name: "NodeError", message }, given);
    }
  }
});

test("a header in another encoding, and with several roots, is accepted", async () => {
  const loose = section(`bf${roots}${version}ff`) + section(`${hello}68656c6c6f`);
  const node = emptyNode();
  const [root] = await importCar(node, pieces(unhex(loose), 10));
  assert.equal(Buffer.from((await node.find(root as CID)) ?? []).toString(), "hello");
  const two = section(`a265726f6f747382${link}${link.replace("2cf2", "2cf3")}${version}`);
  assert.equal((await importCar(emptyNode(), pieces(unhex(two), 10))).length, 2);
});

test("an export that fails yields the blocks before the failure", async () => {
  const [root, pb, small] = await tree();
  const node = emptyNode();
  await node.put([root, pb, small]);
  const got: Uint8Array[] = [];
  await assert.rejects(async () => {
    for await (const piece of exportCar(root.cid, nodeReader(node))) got.push(piece);
  }, /merkledag: not found/);
  assert.equal(hex(Buffer.concat(got)), hex(await written([root.cid], [root, pb, small])));
});

test("a reader that stops ends the walk", async () => {
  const blocks = await tree();
  const node = emptyNode();
  await node.put(blocks);
  let reads = 0;
  const read = nodeReader(node);
  const counting = (cid: CID) => {
    reads += 1;
    return read(cid);
  };
  const many = await Promise.all(Array.from({ length: 300 }, (_, at) => raw(Buffer.alloc(40_000, at + (at >> 8)))));
  const root = await cbor(many.map(({ cid }) => cid));
  await node.put([...many, root]);
  for await (const _ of exportCar(root.cid, counting)) break;
  assert.ok(reads < 50, `${reads} blocks were read`);
});

test("an import needs constant memory", async () => {
  let most = 0;
  let unfinished = 0;
  const put: BlockStore["put"] = async (blocks) => {
    unfinished += blocks.reduce((sum, { bytes }) => sum + bytes.length, 0);
    most = Math.max(most, unfinished);
    await new Promise((resolve) => setImmediate(resolve));
    unfinished -= blocks.reduce((sum, { bytes }) => sum + bytes.length, 0);
  };
  const node = new BlockService({ ...memoryBlocks(), put });
  const head = unhex(section(header));
  let given = 0;
  async function* endless(): AsyncGenerator<Uint8Array> {
    yield head;
    for (let at = 0; at < 256; at += 1) {
      const { cid, bytes } = await raw(Buffer.alloc(256 * 1024, at));
      const length = cid.bytes.length + bytes.length;
      given += length;
      yield Buffer.concat([
        Uint8Array.of((length & 127) | 128, ((length >> 7) & 127) | 128, length >> 14),
        cid.bytes,
        bytes,
      ]);
    }
  }
  await importCar(node, endless());
  assert.ok(given > 60 * 1024 * 1024 && most < 8 * 1024 * 1024, `${most} of ${given} bytes were on their way at once`);
});

test("an import and an export reuse buffers of the pool", async () => {
  const many = await Promise.all(
    Array.from({ length: 60 }, (_, at) => raw(randomBytes(at % 3 === 0 ? 90_000 : 3_000))),
  );
  const root = await cbor(many.map(({ cid }) => cid));
  const car = new Uint8Array(await written([root.cid], [root, ...many]));
  const memory = memoryBlocks();
  const used = new Set<ArrayBufferLike>();
  // Copies each block, and overwrites its buffer before the release.
  const put: BlockStore["put"] = async (blocks) => {
    for (const { cid, bytes, release } of blocks) {
      await memory.put([{ cid, bytes: bytes.slice() }]);
      used.add(bytes.buffer);
      bytes.fill(0);
      release?.();
    }
  };
  const get: BlockStore["get"] = async (cid, buffers) => {
    const bytes = await memory.get(cid);
    if (bytes === undefined || buffers === undefined) return bytes;
    const pooled = buffers.take(bytes.length);
    pooled.set(bytes);
    return pooled;
  };
  const node = new BlockService({ ...memory, put, get });
  async function* passing(): AsyncGenerator<Uint8Array> {
    for await (const piece of pieces(car, 65_536)) {
      yield piece;
      piece.fill(0);
    }
  }
  assert.deepEqual((await importCar(node, passing())).map(String), [String(root.cid)]);
  for (const { cid, bytes } of [root, ...many]) {
    assert.ok(Buffer.compare((await memory.get(cid)) ?? new Uint8Array(), bytes) === 0, `${cid}`);
  }
  assert.ok(used.size < many.length / 2, `${used.size} buffers for ${many.length + 1} blocks`);

  const { buffers } = node;
  const out: Buffer[] = [];
  for await (const piece of exportCar(root.cid, nodeReader(node, { buffers }), { buffers })) {
    out.push(Buffer.from(piece));
    if (piece.length > 32 * 1024) piece.fill(0);
    buffers.release(piece);
  }
  assert.ok(Buffer.concat(out).equals(car));
});
