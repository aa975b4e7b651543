import assert from "node:assert/strict";
import { test } from "node:test";
import * as dagCbor from "@ipld/dag-cbor";
import * as dagJson from "@ipld/dag-json";
import { CID } from "multiformats/cid";
import { type BodyContent, type BodyTree, multipart } from "#test/contract/vectors/content.ts";
import { clientOfHost } from "./support.ts";

const of = clientOfHost();

const file = (content: BodyContent | string) => ({ file: typeof content === "string" ? { text: content } : content });

async function call(path: string, tree?: BodyTree) {
  const [command = "", query = ""] = path.split("?");
  const reply = await of.client.call(command, {
    query: [...new URLSearchParams(query)],
    body: tree && multipart(tree),
  });
  const content = reply.body.toString();
  return { ...reply, text: content, lines: content.split("\n").filter((line) => line !== "") };
}

const message = ({ status, text }: { status: number; text: string }) => [status, JSON.parse(text).Message];

async function put(query: string, content: BodyContent | string): Promise<string> {
  const { status, text } = await call(`dag/put?${query}`, { f: file(content) });
  assert.equal(status, 200, text);
  return JSON.parse(text).Cid["/"];
}

const hex = (bytes: Uint8Array) => ({ hex: Buffer.from(bytes).toString("hex") });
const missing = "bafyreigtpkiih7wr7wb7ts6j5aunnotxiff3yqkx33rs4k4xhskprx5tua";

test("nodes of many files are stored and reported one by one, up to the first invalid one", async () => {
  const numbered = { nodes: { dir: {} } } as const;
  assert.deepEqual(message(await call("dag/put", numbered)), [500, "expected a regular file"]);
  assert.deepEqual(message(await call("dag/put", {})), [500, "expected a file argument"]);
  assert.deepEqual(message(await call("dag/put", { f: file("") })), [500, "unexpected EOF"]);
  assert.deepEqual(message(await call("dag/put?input-enc=cbor", { f: file({ hex: "a1" }) })), [500, "unexpected EOF"]);
  const files = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`f${at}`, file(`{"at":${at}}`)]));
  const { lines } = await call("dag/put", files);
  assert.equal(new Set(lines).size, 40);
  const reply = await call("dag/put", { ...files, g: file("[1,"), h: file("1") });
  assert.deepEqual([reply.status, reply.lines, reply.trailer], [200, lines, "unexpected EOF"]);
  const broken = await call("dag/put", { ...files, g: { dir: {} } });
  assert.deepEqual([broken.lines, broken.trailer], [lines, "expected a regular file"]);
});

test("later clients' names of codecs and options are accepted", async () => {
  const value = { bytes: new Uint8Array([1, 2]), int: 7, link: CID.parse(missing) };
  const asCbor = hex(dagCbor.encode(value));
  const cbor = await put("input-codec=dag-cbor&store-codec=dag-cbor", asCbor);
  assert.equal(await put("input-codec=dag-json&store-codec=dag-cbor", hex(dagJson.encode(value))), cbor);
  const json = await put("input-codec=dag-json&store-codec=dag-json", hex(dagJson.encode(value)));
  assert.equal(await put("input-codec=dag-cbor&store-codec=dag-json", asCbor), json);
  assert.equal(CID.parse(json).code, 0x0129);
  assert.deepEqual(dagJson.decode((await call(`block/get?arg=${json}`)).body), value);
  for (const cid of [cbor, json]) {
    assert.deepEqual(JSON.parse((await call(`dag/get?arg=${cid}`)).text), {
      bytes: "AQI=",
      int: 7,
      link: { "/": missing },
    });
    assert.deepEqual(JSON.parse((await call(`dag/resolve?arg=${cid}/int`)).text), {
      Cid: { "/": cid },
      RemPath: "int",
    });
    assert.deepEqual(JSON.parse((await call(`dag/resolve?arg=${cid}/link`)).text), {
      Cid: { "/": missing },
      RemPath: "",
    });
    assert.deepEqual((await call(`refs?arg=${cid}&max-depth=0&recursive=true`)).status, 200);
  }
});

test("keys and prototypes of objects are data", async () => {
  const cid = await put("", '{"__proto__":{"a":1},"constructor":"c"}');
  assert.equal((await call(`dag/get?arg=${cid}`)).text, '{"__proto__":{"a":1},"constructor":"c"}\n');
  assert.equal((await call(`dag/get?arg=${cid}/__proto__/a`)).text, "1\n");
  assert.deepEqual(message(await call(`dag/get?arg=${cid}/toString`)), [500, "no such link found"]);
  for (const name of ["__proto__", "constructor", "toString"]) {
    assert.deepEqual(message(await call(`dag/put?input-enc=${name}`, { f: file("{}") })), [
      500,
      `no input parser for "${name}"`,
    ]);
    assert.deepEqual(message(await call(`dag/put?format=${name}`, { f: file("{}") })), [
      500,
      `no parser for format "${name}" using input type "json"`,
    ]);
  }
});

test("nodes of any depth are stored, but their JSON form has a limit", async () => {
  const levels = 100_000;
  const deep = Buffer.concat([Buffer.alloc(levels, 0x81), Buffer.from([0xf6])]);
  const cid = await put("input-enc=cbor", hex(deep));
  assert.deepEqual(JSON.parse((await call(`dag/stat?arg=${cid}`)).text), { Size: levels + 1, NumBlocks: 1 });
  const [status, text] = message(await call(`dag/get?arg=${cid}`));
  assert.equal(status, 500);
  assert.match(text, /exceeded max depth$/);
  const brackets = "[".repeat(levels) + "]".repeat(levels);
  assert.deepEqual(message(await call("dag/put", { f: file(brackets) })), [
    500,
    "invalid character '[' exceeded max depth",
  ]);
  const [refused] = message(await call(`dag/put?input-codec=dag-json`, { f: file(brackets) }));
  assert.equal(refused, 500);
  const huge = { f: file({ hex: "9bffffffffffffff00" }) };
  assert.deepEqual(message(await call("dag/put?input-enc=cbor", huge)), [
    500,
    "cbor: positive integer is out of length",
  ]);
  assert.deepEqual(message(await call("dag/put?input-enc=cbor", { f: file({ hex: "9a7fffffff" }) })), [
    500,
    "unexpected EOF",
  ]);
});

test("a node that cannot be JSON fails before the response begins", async () => {
  const cid = await put("input-enc=cbor", { hex: "fb7ff8000000000000" });
  assert.deepEqual(message(await call(`dag/get?arg=${cid}`)), [
    500,
    "json: error calling MarshalJSON for type *cbornode.Node: json: unsupported value: NaN",
  ]);
});

test("bytes that are not text are replaced one by one", async () => {
  const raw = await put("format=raw&input-enc=raw", { hex: "ff00e282" });
  assert.equal((await call(`dag/get?arg=${raw}`)).text, '"\\ufffd\\u0000\\ufffd\\ufffd"\n');
  const key = JSON.parse((await call("block/put?format=v0", { f: file({ hex: "0a05ff00410862" }) })).text).Key;
  assert.equal((await call(`object/get?arg=${key}`)).text, '{"Links":[],"Data":"\\ufffd\\u0000A\\u0008b"}\n');
  assert.equal((await call(`object/get?arg=${key}&encoding=protobuf`)).body.toString("hex"), "0a05ff00410862");
  assert.equal(
    (await call(`object/get?arg=${key}&encoding=xml`)).text,
    "<Node><Data>\ufffd\ufffdA\ufffdb</Data></Node>",
  );
});

test("dag/stat counts sizes, and reports missing children", async () => {
  const cid = await put("", `{"a":{"/":"${missing}"}}`);
  const walked = await call(`dag/stat?arg=${cid}`);
  assert.deepEqual(
    [walked.lines, walked.trailer],
    [['{"Size":44,"NumBlocks":1}'], "error traversing DAG: merkledag: not found"],
  );
  assert.deepEqual(message(await call(`dag/stat?arg=${cid}&progress=false`)), [
    500,
    "error traversing DAG: merkledag: not found",
  ]);
  assert.deepEqual(message(await call(`dag/stat?arg=${missing}`)), [500, "merkledag: not found"]);
  for (const [query, remedy] of [
    ["", "after attaching to the network"],
    ["&offline=true", "without the offline flag"],
  ]) {
    const exported = await call(`dag/export?arg=${cid}${query}`);
    assert.deepEqual(
      [exported.status, exported.trailer],
      [200, `merkledag: not found (currently offline, perhaps retry ${remedy})`],
    );
    assert.equal(exported.body.length, 59 + 1 + 36 + 44, "the header and the block that is here");
  }
});

test("an import pins every root or reports why not, and what it reported survives a collection", async () => {
  const child = await put("", '{"child":"of the archive"}');
  const root = await put("", `{"a":{"/":"${child}"}}`);
  const car = (await call(`dag/export?arg=${root}`)).body;
  const files = { a: file(hex(car)) };
  await call("repo/gc");
  assert.deepEqual(message(await call(`dag/stat?arg=${root}`)), [500, "merkledag: not found"]);
  assert.equal((await call("dag/import?pin-roots=false", files)).text, "");
  await call("repo/gc");
  assert.deepEqual(message(await call(`dag/stat?arg=${root}`)), [500, "merkledag: not found"]);
  const imported = await call("dag/import", files);
  assert.deepEqual(imported.lines, [`{"Root":{"Cid":{"/":"${root}"},"PinErrorMsg":""}}`]);
  await call("repo/gc");
  assert.equal((await call(`dag/get?arg=${root}/a/child`)).text, '"of the archive"\n');
  assert.deepEqual(message(await call("dag/import", { a: file(hex(car.subarray(0, -1))) })), [500, "unexpected EOF"]);
});

test("a missing root is reported in both forms", async () => {
  const header = Buffer.from(
    `3aa265726f6f747381d82a582500${Buffer.from(CID.parse(missing).bytes).toString("hex")}6776657273696f6e01`,
    "hex",
  );
  const files = { a: file(hex(header)) };
  const { lines, trailer } = await call("dag/import", files);
  assert.deepEqual(JSON.parse(lines[0] as string), {
    Root: { Cid: { "/": missing }, PinErrorMsg: "blockstore: block not found" },
  });
  assert.equal(trailer, "unable to pin all roots: 1 out of 1 failed");
  assert.equal(
    (await call("dag/import?encoding=text", files)).text,
    `Pinned root\t${missing}\tFAILED: blockstore: block not found\n`,
  );
  assert.equal((await call("dag/import?encoding=text&silent=true", files)).text, "");
  assert.deepEqual(message(await call("dag/import", { a: { dir: {} } })), [500, "expected a file handle"]);
  for (const nothing of [{ a: file("") }, {}]) {
    const { status, text, trailer } = await call("dag/import", nothing);
    assert.deepEqual([status, text, trailer], [200, "", undefined], "an import of nothing");
  }
});

test("objects are returned in both shapes, and a pin makes them durable", async () => {
  const [empty] = (await call("object/new")).lines as [string];
  assert.deepEqual(JSON.parse(empty), { Hash: "QmdfTbBqBPQ7VNxZEYEj14VmRuZBkqFbiwReogJgS1zR1n", Links: [] });
  const { Hash } = JSON.parse(empty);
  const linked = JSON.parse((await call(`object/patch/add-link?arg=${Hash}&arg=l&arg=${Hash}`)).text);
  assert.deepEqual(linked.Links, [{ Name: "l", Hash, Size: 0 }]);
  assert.equal((await call("object/new?arg=unixfs-dir&arg=x")).lines.length, 1);
  assert.deepEqual(message(await call("object/new?arg=")), [500, "unknown node type: "]);
  const pinned = JSON.parse((await call("object/put?pin=true", { f: file('{"Data":"kept"}') })).text).Hash;
  const loose = JSON.parse((await call("object/put", { f: file('{"Data":"loose"}') })).text).Hash;
  await call("repo/gc");
  assert.equal((await call(`object/data?arg=${pinned}`)).text, "kept");
  assert.deepEqual(message(await call(`object/data?arg=${loose}`)), [500, "merkledag: not found"]);
});

test("objects are shown as text, human-readable and in other bases", async () => {
  const { Hash } = JSON.parse((await call("object/put", { f: file('{"Data":"abc"}') })).text);
  const link = `arg=${Hash}&arg=a%0Ab&arg=${Hash}`;
  const root = (await call(`object/patch/add-link?${link}&encoding=text`)).text.trim();
  assert.equal(
    (await call(`object/links?arg=${root}&headers=true&encoding=text`)).text,
    `${"Hash".padEnd(47)}Size Name\n${Hash} 5    a\\nb\n`,
  );
  assert.equal(
    (await call(`object/stat?arg=${root}&human=true&encoding=text`)).text,
    "NumLinks:       1\nBlockSize:      50\nLinksSize:      47\nDataSize:       3\nCumulativeSize: 55 B\n",
  );
  const links = JSON.parse((await call(`object/links?arg=${root}&cid-base=base32`)).text);
  assert.equal(links.Hash, root, "version 0 stays what it is");
  const upgraded = JSON.parse((await call(`object/links?arg=${root}&upgrade-cidv0-in-output=true`)).text);
  assert.equal(upgraded.Hash, CID.parse(root).toV1().toString());
  assert.deepEqual(message(await call(`object/links?arg=${root}&cid-base=nope`)), [
    500,
    "Unsupported multibase encoding: nope",
  ]);
  assert.equal(
    (await call(`object/diff?arg=${Hash}&arg=${root}&encoding=xml`)).text,
    `<Changes><Changes><Type>0</Type><Path>a&#xA;b</Path><After>${Hash}</After></Changes></Changes>`,
  );
});

test("oversized uploads of objects are cut off without being buffered", async () => {
  const long = { f: file({ repeat: { text: '{"Data":"', count: 300_000 } }) };
  const [status] = message(await call("object/put", long));
  assert.equal(status, 500);
  const pb = Buffer.concat([Buffer.from("0a8080c001", "hex"), Buffer.alloc(3 * 1024 * 1024)]);
  assert.deepEqual(message(await call("object/put?inputenc=protobuf", { f: file(hex(pb)) })), [
    500,
    "incorrectly formatted merkledag node: unmarshal failed. unexpected EOF",
  ]);
});

test("tar archives are stored as trees, and returned again", async () => {
  const entries = [
    { name: "dir/", text: "" },
    { name: "dir/file", text: "one" },
    { name: "../../up", text: "two" },
    { name: "a//b", text: "three" },
    { name: "dir/file/below", text: "four" },
    { name: "link", symlink: "dir/file" },
  ];
  const tree = { "x.tar": file({ tar: entries }) };
  const added = JSON.parse((await call("tar/add", tree)).text);
  assert.deepEqual(Object.keys(added), ["Name", "Hash", "Size"]);
  assert.equal(added.Name, "x.tar");
  const direct = async (format: string) => (await call(`refs?arg=${added.Hash}${format}`)).text;
  assert.match(await direct(""), /"Ref":"Qm/);
  assert.equal(await direct("&format="), await direct(""), "an empty format is none");
  const names = (await call(`refs?arg=${added.Hash}&recursive=true&format=<linkname>`)).lines.map(
    (line) => JSON.parse(line).Ref,
  );
  assert.deepEqual(names, [
    "-..",
    "-..",
    "-up",
    "data",
    "-a",
    "-",
    "-b",
    "data",
    "-dir",
    "-file",
    "-below",
    "data",
    "data",
    "-link",
  ]);
  const stat = JSON.parse((await call(`object/stat?arg=${added.Hash}`)).text);
  assert.equal(added.Size, String(stat.CumulativeSize));
  const { body } = await call(`tar/cat?arg=${added.Hash}`);
  assert.equal(body.length % 512, 0);
  const again = JSON.parse((await call("tar/add", { again: file(hex(body)) })).text);
  assert.equal((await call(`tar/cat?arg=${again.Hash}`)).body.toString("hex"), body.toString("hex"));
  assert.equal((await call("tar/add?encoding=text&cid-base=base32", tree)).text.slice(0, 4), "bafy");
});

test("invalid tar archives are errors without further effect", async () => {
  assert.deepEqual(message(await call("tar/add", { f: file("x".repeat(512)) })), [
    500,
    "archive/tar: invalid tar header",
  ]);
  assert.deepEqual(message(await call("tar/add", { f: file("short") })), [500, "unexpected EOF"]);
  const many = { name: "x/".repeat(40), text: "" };
  assert.equal((await call("tar/add", { f: file({ tar: [many] }) })).status, 200);
  const raw = await put("format=raw&input-enc=raw", "raw");
  assert.deepEqual(message(await call(`tar/cat?arg=${raw}`)), [500, "expected protobuf dag node"]);
  const { Hash } = JSON.parse((await call("object/new")).text);
  assert.deepEqual(message(await call(`tar/cat?arg=${Hash}`)), [500, "not an IPFS tarchive"]);
});
