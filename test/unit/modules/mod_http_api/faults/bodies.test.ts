import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { CarWriter } from "@ipld/car";
import * as dagCbor from "@ipld/dag-cbor";
import { CID } from "multiformats/cid";
import { entry, packed } from "#test/support/tar.ts";
import { type RpcHost, startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { bytesInUse, call, expectGrowthBelow, rawBlock } from "./lab.ts";

const mebibyte = 1024 * 1024;

let host: RpcHost;
before(async () => {
  host = await startRpc();
});
after(() => host?.stop());
// After any input, the next call succeeds and the log has no error of the program.
afterEach(async () => {
  assert.equal((await call(host, "version")).status, 200);
  assert.doesNotMatch(host.log(), /failed|uncaught/i);
});

const refusal = async (path: string, body: Uint8Array | string) => {
  const { status, message } = await call(host, path, body);
  return [status, message];
};

async function storedCids(): Promise<string[]> {
  const { values } = await call<{ Ref: string }>(host, "refs/local");
  return values.map(({ Ref }) => Ref).sort();
}

test("an oversized block is refused by each command that accepts blocks", async () => {
  const long = Buffer.alloc(128 * mebibyte + 1);
  const before = bytesInUse();
  const empty = (await call<{ Hash: string }>(host, "object/new")).values[0]?.Hash;
  for (const path of ["block/put", "dag/put?input-enc=raw&format=raw", `object/patch/append-data?arg=${empty}`]) {
    assert.deepEqual(await refusal(path, long), [500, "a block of more than 134217728 bytes is not accepted"], path);
  }
  await expectGrowthBelow(before, 16 * mebibyte);
});

describe("an archive of blocks", () => {
  const leaf = rawBlock("of an archive that is not whole");
  const foot = rawBlock("a second one");
  let car: Buffer;
  before(async () => {
    const { writer, out } = CarWriter.create([leaf.cid, foot.cid]);
    const read = Array.fromAsync(out);
    for (const block of [leaf, foot]) await writer.put(block);
    await writer.close();
    car = Buffer.concat(await read);
  });

  test("a truncated archive of blocks pins nothing, and the next collection removes its blocks", async () => {
    const before = await storedCids();
    const pins = await call(host, "pin/ls?type=all");
    for (const length of [1, 20, car.length - 60, car.length - 1]) {
      assert.deepEqual(await refusal("dag/import", car.subarray(0, length)), [500, "unexpected EOF"], `${length}`);
    }
    assert.deepEqual((await call(host, "pin/ls?type=all")).text, pins.text);
    await call(host, "repo/gc");
    const left = await storedCids();
    assert.deepEqual(
      left.filter((ref) => !before.includes(ref)),
      [],
    );
  });

  test("an archive of another version, or with blocks of an unknown codec, is refused by name", async () => {
    const version2 = Buffer.from("0aa16776657273696f6e02000000", "hex");
    assert.deepEqual(await refusal("dag/import", version2), [500, "invalid car version: 2"]);
    const git = { cid: CID.createV1(0x78, leaf.cid.multihash), bytes: leaf.bytes };
    assert.deepEqual(await refusal("dag/import", await carOf(git)), [500, "unrecognized object type: 120"]);
    const lying = { cid: foot.cid, bytes: leaf.bytes };
    assert.deepEqual(await refusal("dag/import", await carOf(lying)), [
      500,
      `mismatch in content integrity, name: ${foot.cid}, data: ${leaf.cid}`,
    ]);
  });

  test("an archive whose first section claims exabytes neither blocks nor allocates memory", async () => {
    const before = bytesInUse();
    for (const size of ["ffffffffffffffff7f", "808080808080808010", "ffffff3f"]) {
      const [status, message] = await refusal("dag/import", Buffer.concat([car, Buffer.from(size, "hex"), leaf.bytes]));
      assert.equal(status, 500);
      assert.match(String(message), /^invalid car: a section of \d+ bytes is longer than|^unexpected EOF$/);
    }
    await expectGrowthBelow(before, 16 * mebibyte);
  });

  test("an import reports each of a thousand missing roots in the header of an archive", async () => {
    const roots = Array.from({ length: 1000 }, (_, at) => rawBlock(`root ${at}`).cid);
    const header = dagCbor.encode({ roots, version: 1 });
    const { status, values, message } = await call(host, "dag/import", Buffer.concat([varint(header.length), header]));
    assert.deepEqual([status, values.length], [200, roots.length]);
    assert.equal(message, `unable to pin all roots: ${roots.length} out of ${roots.length} failed`);
  });
});

const varint = (value: number): Buffer => {
  const bytes: number[] = [];
  let left = value;
  for (; left > 127; left = Math.floor(left / 128)) bytes.push((left % 128) | 128);
  return Buffer.from([...bytes, left]);
};

async function carOf(block: { readonly cid: CID; readonly bytes: Uint8Array }): Promise<Buffer> {
  const { writer, out } = CarWriter.create([block.cid]);
  const read = Array.fromAsync(out);
  await writer.put(block);
  await writer.close();
  return Buffer.concat(await read);
}

const levels = 100_000;
const nested = (open: string, close: string) => Buffer.from(open.repeat(levels) + close.repeat(levels));

const hex = (text: string) => Buffer.from(text, "hex");
const tooDeep = (letter: string) => `invalid character '${letter}' exceeded max depth`;
const badPb = (reason: string) => `incorrectly formatted merkledag node: unmarshal failed. ${reason}`;

describe("a node", () => {
  /** The messages of go-ipfs, or our own where it gives none. */
  const refused: readonly (readonly [path: string, body: Uint8Array | string, message: string])[] = [
    ["dag/put", nested("[", "]"), tooDeep("[")],
    ["dag/put", nested('{"a":', "}"), tooDeep("{")],
    ["dag/put", '{"a":1e999}', "json: cannot unmarshal number 1e999 into Go value of type float64"],
    ["dag/put", '{"a":{"/":"__proto__"}}', "selected encoding not supported"],
    ["dag/put?input-enc=dag-json", nested("[", "]"), tooDeep("[")],
    ["dag/put?input-enc=dag-json", nested('{"a":', "}"), tooDeep("{")],
    ["dag/put?input-enc=dag-json", '{"a":1,"a":2}', 'repeated key "a"'],
    ["dag/put?input-enc=dag-json", '{"__proto__":1,"__proto__":2}', 'repeated key "__proto__"'],
    ["dag/put?input-enc=cbor", hex("a2616101616102"), 'repeated key "a"'],
    ["dag/put?input-enc=cbor", hex("9b1000000000000000"), "unexpected EOF"],
    ["dag/put?input-enc=cbor", hex("bb1000000000000000"), "unexpected EOF"],
    [
      "dag/put?input-enc=cbor",
      hex("7b1000000000000000"),
      "cbor: decoding rejected oversized string field: 1152921504606846976 is too large",
    ],
    [
      "dag/put?input-enc=cbor",
      hex("5b1000000000000000"),
      "cbor: decoding rejected oversized byte field: 1152921504606846976 is too large",
    ],
    ["dag/put?input-enc=cbor", Buffer.alloc(1_500_000, 0x81), "cbor: values are nested deeper than 1000000 levels"],
    ["dag/put?input-enc=cbor", Buffer.alloc(200_000, 0xd8), "unsupported multiple tags on a single data item"],
    ["dag/put?format=dag-pb", '{"links":[{"Cid":{"/":"__proto__"}}]}', "selected encoding not supported"],
    [
      "dag/put?format=dag-pb&input-enc=protobuf",
      hex("12ffffffffffffffffff01"),
      badPb("proto: negative length found during unmarshaling"),
    ],
    ["dag/put?format=dag-pb&input-enc=protobuf", hex("0a8080808080808010"), badPb("unexpected EOF")],
    ["object/put", nested("[", "]"), tooDeep("[")],
    ["object/put", `{"Links":${"[".repeat(levels)}`, tooDeep("[")],
    ["object/put", '{"__proto__":{"Data":"x"}}', 'json: unknown field "__proto__"'],
    ["object/put?inputenc=xml", `<Node>${"<a>".repeat(levels)}`, "XML syntax error on line 1: unexpected EOF"],
    [
      "object/put?inputenc=xml",
      '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><Node><Data>&b;</Data></Node>',
      "XML syntax error on line 1: invalid character entity &b;",
    ],
  ];

  test("a node with impossible sizes, depth or keys is refused with a message, without allocating memory", async () => {
    const before = bytesInUse();
    for (const [path, body, message] of refused) {
      const shown = Buffer.from(body as string)
        .subarray(0, 12)
        .toString("latin1");
      assert.deepEqual(await refusal(path, body), [500, message], `${path} ${shown}`);
    }
    await expectGrowthBelow(before, 32 * mebibyte);
  });

  test("a node keeps keys that are names of prototype members, in every codec", async () => {
    const json = '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"toString":"x"}';
    for (const query of ["", "input-enc=dag-json&format=dag-json", "input-enc=dag-json", "input-enc=dag-cbor"]) {
      const body = query.endsWith("cbor") ? dagCbor.encode(JSON.parse(json)) : json;
      const [put] = (await call<{ Cid: { "/": string } }>(host, `dag/put?${query}`, body)).values;
      const { text } = await call(host, `dag/get?arg=${put?.Cid["/"]}`);
      assert.deepEqual(JSON.parse(text), JSON.parse(json));
      const [, message] = await refusal(`dag/get?arg=${put?.Cid["/"]}/valueOf`, "");
      assert.equal(message, "no such link found");
    }
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  });
});

describe("an archive of files", () => {
  test("names in an archive of files cannot escape: they are names of links, and are returned unchanged", async () => {
    const names = [
      "../../etc/passwd",
      "/absolute",
      "a/../../b",
      "..",
      "./c",
      "nul\u0001",
      "__proto__",
      "constructor/x",
    ];
    const links = { up: "../../../etc/passwd", away: "/etc/passwd" };
    const body = await packed([
      ...names.map((name) => ({ name, body: name })),
      ...Object.entries(links).map(([name, linkname]) => ({ name, linkname, type: "symlink" as const })),
      { name: "hard", linkname: "/etc/shadow", type: "link" },
      { name: "device", type: "character-device", devmajor: 1, devminor: 5 },
      { name: "pipe", type: "fifo" },
    ]);
    const [added] = (await call<{ Hash: string }>(host, "tar/add", body)).values;
    const given = await call(host, `tar/cat?arg=${added?.Hash}`);
    assert.deepEqual([given.status, given.message], [200, undefined]);
    for (const name of names) assert.ok(given.bytes.includes(name), name);
    assert.ok(given.bytes.includes("/etc/shadow"));
    const again = (await call<{ Hash: string }>(host, "tar/add", given.bytes)).values[0];
    assert.equal((await call(host, `tar/cat?arg=${again?.Hash}`)).text, given.text);
  });

  test("an archive of files that declares more than it has is refused with a message", async () => {
    const before = bytesInUse();
    const inHeader = entry("0", "little", { size: 2 ** 33 - 1 });
    const inFront = Buffer.concat([entry("x", "25 size=9007199254740991\n"), entry("0", "little")]);
    for (const body of [inHeader, inFront]) assert.deepEqual(await refusal("tar/add", body), [500, "unexpected EOF"]);
    await expectGrowthBelow(before, 16 * mebibyte);
  });

  test("an archive of files with holes, old or new, is refused", async () => {
    const sparse = [500, "archive/tar: sparse files are not supported: pack the archive without --sparse"];
    const hole = await packed([{ name: "a", body: "x", pax: { "GNU.sparse.major": "1", "GNU.sparse.minor": "0" } }]);
    for (const body of [hole, entry("S", "")]) assert.deepEqual(await refusal("tar/add", body), sparse);
  });

  test("an archive of files with a path over too many directories is refused", async () => {
    const body = Buffer.concat([entry("L", `${"x/".repeat(400_000)}f`), entry("0", "")]);
    assert.deepEqual(await refusal("tar/add", body), [
      500,
      "archive/tar: paths of this archive lead over more than 250000 unnamed directories",
    ]);
  });

  test("an archive becomes the same tree however often a name occurs, and a file can be replaced by a folder and back", async () => {
    const flipping = Array.from({ length: 200 }, (_, at) => ({ name: at % 2 === 0 ? "a" : "a/b", body: `${at}` }));
    const { status, message } = await call(host, "tar/add", await packed(flipping));
    assert.deepEqual([status, message], [200, undefined]);
  });
});
