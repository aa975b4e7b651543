import assert from "node:assert/strict";
import { test } from "node:test";
import type { CID } from "multiformats/cid";
import { diff } from "#node/content/dag/object/diff.ts";
import { type EditedBlocks, newObject, withData, withLink, withoutLink } from "#node/content/dag/object/edit.ts";
import { objectOf, readObjectJson } from "#node/content/dag/object/json.ts";
import { decodeObject, pbBlock, readObject, sizeOf } from "#node/content/dag/object/node.ts";
import { readObjectXml } from "#node/content/dag/object/xml.ts";
import { nodeReader } from "#node/content/dag/reader.ts";
import { encodePb, parsePb } from "#node/formats/dag_pb/dag_pb.ts";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import { atOnce } from "#node/util/async/steps.ts";

const cid = "QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN";
const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString();

class Graph {
  readonly blocks = new BlockService(memoryBlocks());
  readonly read = nodeReader(this.blocks);

  async keep(edited: EditedBlocks | readonly [EditedBlocks[0]]): Promise<CID> {
    await this.blocks.put(edited);
    return (edited.at(-1) as EditedBlocks[0]).cid;
  }

  /** Stores a node with data and children. */
  async node(data: string, children: Readonly<Record<string, CID>> = {}): Promise<CID> {
    const links = [];
    for (const [name, child] of Object.entries(children)) {
      links.push({ name, cid: child, size: sizeOf(child, await this.read(child)) });
    }
    return this.keep([await pbBlock(encodePb({ data: Buffer.from(data), links }))]);
  }

  objectAt = (root: CID) => readObject(root, this.read);

  async child(of: CID) {
    return { cid: of, size: sizeOf(of, await this.read(of)) };
  }

  /** Returns the data by path. */
  async tree(root: CID, path = ""): Promise<Record<string, string>> {
    const { data, links } = await this.objectAt(root);
    const all: Record<string, string> = { [path]: text(data) };
    for (const { name, cid: child } of links) Object.assign(all, await this.tree(child, `${path}/${name}`));
    return all;
  }
}

const empty = () => newObject(encodePb({ data: undefined, links: [] }));

test("a link is put at a path: existing nodes are retained, and missing ones created", async () => {
  const graph = new Graph();
  const leaf = await graph.node("leaf");
  const root = await graph.node("root", { a: await graph.node("a", { x: leaf, z: leaf }), x: leaf });
  const child = await graph.child(await graph.node("new"));
  const edit = async (path: string, create = false) =>
    graph.tree(
      await graph.keep(await withLink(await graph.objectAt(root), path, child, graph.read, create ? empty : undefined)),
    );
  assert.deepEqual(await edit("a/x"), { "": "root", "/a": "a", "/a/x": "new", "/a/z": "leaf", "/x": "leaf" });
  assert.deepEqual(await edit("b/c/d", true), {
    ...(await graph.tree(root)),
    "/b": "",
    "/b/c": "",
    "/b/c/d": "new",
  });
  const sizes = async (path: string) => {
    const edited = await withLink(await graph.objectAt(root), path, child, graph.read);
    const { cid: of, bytes } = edited.at(-1) as EditedBlocks[0];
    return decodeObject(of, bytes).links.map(({ name, size }) => [name, size]);
  };
  const changed = await withLink(await graph.objectAt(root), "a/x", child, graph.read);
  await graph.keep(changed);
  for (const [name, size] of await sizes("a/x")) {
    const { links } = decodeObject((changed.at(-1) as EditedBlocks[0]).cid, (changed.at(-1) as EditedBlocks[0]).bytes);
    const target = links.find((each) => each.name === name)?.cid as CID;
    assert.equal(size, sizeOf(target, await graph.read(target)));
  }
});

test("a path that does not exist is rejected with the reference's text", async () => {
  const graph = new Graph();
  const root = await graph.node("root", { a: await graph.node("a") });
  const child = await graph.child(root);
  const objectAt = await graph.objectAt(root);
  const refusals = [
    ["b/c", false, "no link by that name"],
    ["/a/", false, "no link by that name"],
    ["", false, "cannot create link with no name"],
    ["a/", false, "cannot create link with no name"],
    ["b/", true, "cannot create link with no name"],
  ] as const;
  for (const [path, create, message] of refusals) {
    await assert.rejects(withLink(objectAt, path, child, graph.read, create ? empty : undefined), { message }, path);
  }
  await assert.rejects(withoutLink(objectAt, "nope", graph.read), { message: "no link by that name" });
  await assert.rejects(withoutLink(objectAt, "a/nope", graph.read), { message: "no link by that name" });
  await assert.rejects(withoutLink(objectAt, "nope/a", graph.read), { message: "no link by that name" });
});

test("a removal removes all links of a name, and replaced data keeps the form of the CID", async () => {
  const graph = new Graph();
  const leaf = await graph.node("leaf");
  const twice = await pbBlock(
    encodePb({ data: undefined, links: ["x", "x", "y"].map((name) => ({ name, cid: leaf, size: 5 })) }),
  );
  await graph.keep([twice]);
  const [removed] = await withoutLink(await graph.objectAt(twice.cid), "x", graph.read);
  assert.deepEqual(
    decodeObject(removed.cid, removed.bytes).links.map(({ name }) => name),
    ["y"],
  );
  const [versionOne] = await withData({ ...(await graph.objectAt(leaf)), cid: leaf.toV1() }, Buffer.from("other"));
  assert.equal(versionOne.cid.version, 1);
  assert.equal(text(decodeObject(versionOne.cid, versionOne.bytes).data), "other");
});

test("a path with very many components needs no stack", async () => {
  const graph = new Graph();
  const child = await graph.child(await graph.node("deep"));
  const path = Array.from({ length: 20_000 }, () => "d").join("/");
  const edited = await withLink(await empty(), path, child, graph.read, empty);
  assert.equal(edited.length, 20_000);
});

test("differences are reported at their full depth", async () => {
  const graph = new Graph();
  const [one, two, three] = await Promise.all(["1", "2", "3"].map((data) => graph.node(data)));
  const before = await graph.node("", { a: await graph.node("", { b: one as CID, c: two as CID }), gone: one as CID });
  const after = await graph.node("", { a: await graph.node("", { b: three as CID, c: two as CID }), come: one as CID });
  const changes = await diff(before, after, graph.read);
  assert.deepEqual(
    changes.map(({ kind, path }) => [kind, path]),
    [
      ["changed", "a/b"],
      ["removed", "gone"],
      ["added", "come"],
    ],
  );
  assert.deepEqual(await diff(before, before, graph.read), []);
  assert.deepEqual(
    (await diff(one as CID, two as CID, graph.read)).map(({ path }) => path),
    [""],
  );
});

const L = `<Links><Name>n</Name><Hash>${cid}</Hash><Size> 5 </Size></Links>`;

test("JSON and XML give the same objects", () => {
  const json = `{"data":"a\\u0008b","LINKS":[{"Name":"n","Hash":"${cid}","Size":5}]} junk`;
  const xml = `<?xml version="1.0"?><!DOCTYPE x [<!-- y -->]><any:thing a='1'>${L}<Data>a<b>no</b>&lt;&#x42;<![CDATA[<&]]></Data></any:thing> junk`;
  for (const [draft, data] of [
    [atOnce(readObjectJson(Buffer.from(json))), "a\bb"],
    [atOnce(readObjectXml(Buffer.from(xml))), "a<B<&"],
  ] as const) {
    const node = atOnce(objectOf(draft, "text"));
    assert.equal(text(node.data), data);
    assert.deepEqual(
      node.links.map(({ name, size, cid: target }) => [name, size, String(target)]),
      [["n", 5, cid]],
    );
  }
  assert.equal(text(atOnce(objectOf({ data: Buffer.from("aGk="), links: [] }, "base64")).data), "hi");
});

/**
 * The texts of the reference. Where the reference reports nothing, the text names what is missing.
 */
const badJson: Readonly<Record<string, string>> = {
  "": "unexpected EOF",
  '{"Data":"a"': "unexpected EOF",
  "[]": "json: cannot unmarshal array into Go value of type coreapi.Node",
  '{"Data":true}': "json: cannot unmarshal bool into Go struct field Node.Data of type string",
  '{"Links":1}': "json: cannot unmarshal number into Go struct field Node.Links of type []coreapi.Link",
  '{"Links":[1]}': "json: cannot unmarshal number into Go struct field Node.Links of type coreapi.Link",
  '{"Links":[{"x":1}]}': 'json: unknown field "x"',
  '{"Links":[{"Name":1}]}': "json: cannot unmarshal number into Go struct field Link.Links.Name of type string",
  '{"Links":[{"Size":1e3}]}': "json: cannot unmarshal number 1e3 into Go struct field Link.Links.Size of type uint64",
  '{"x":{"y":[1,{}]},"Data":1}': 'json: unknown field "x"',
  '{"__proto__":{}}': 'json: unknown field "__proto__"',
  '{"Links":[null]}': "cid too short",
  '{"Links":[{"Hash":"nope"}]}': "selected encoding not supported",
};

const badXml: Readonly<Record<string, string>> = {
  "": "unexpected EOF",
  junk: "unexpected EOF",
  "<Node>": "unexpected EOF",
  "<Node><Data>a</Node>": "element <Data> closed by </Node>",
  "<Node><Data>a</data></Node>": "element <Data> closed by </data>",
  "</Node>": "unexpected end element </Node>",
  "<Node><Data>&nope;</Data></Node>": "invalid character entity &nope;",
  "<Node><Data>&</Data></Node>": "invalid character entity & (no semicolon)",
  "<Node><Data>a]]>b</Data></Node>": "unescaped ]]> not in CDATA section",
  "<Node a=1/>": "unquoted or missing attribute value in element",
  "<Node a/>": "attribute name without = in element",
  "<Node><!-- -- --></Node>": 'invalid sequence "--" not allowed in comments',
  "<Node>\n<Data>\x01</Data></Node>": "illegal character code U+0001",
  "<1/>": "invalid XML name: 1",
};

test("an invalid object is rejected with the reference's text", () => {
  for (const [given, message] of Object.entries(badJson)) {
    assert.throws(
      () => atOnce(objectOf(atOnce(readObjectJson(Buffer.from(given))), "text")),
      { name: "NodeError", message },
      given,
    );
  }
  for (const [given, message] of Object.entries(badXml)) {
    const line = given.includes("\n") ? 2 : 1;
    const whole = `XML syntax error on line ${line}: ${message}`;
    assert.throws(() => atOnce(readObjectXml(Buffer.from(given))), { name: "NodeError", message: whole }, given);
  }
  assert.throws(() => atOnce(readObjectXml(Buffer.from("<N><Links><Size>-1</Size></Links></N>"))), {
    message: 'strconv.ParseUint: parsing "-1": invalid syntax',
  });
  assert.throws(() => atOnce(objectOf({ data: new Uint8Array(), links: [] }, "nope")), {
    message: "unknown data field encoding",
  });
});

test("deeply nested XML needs neither stack nor time", () => {
  const deep = `${"<a>".repeat(200_000)}${"</a>".repeat(200_000)}`;
  assert.deepEqual(atOnce(readObjectXml(Buffer.from(deep))), { data: new Uint8Array(), links: [] });
});

/** The texts of the reference. */
const badPb: Readonly<Record<string, string>> = {
  "00": "unmarshal failed. proto: PBNode: illegal tag 0 (wire type 0)",
  "0a": "unmarshal failed. unexpected EOF",
  "1200": "link hash #0 is not valid multihash. varints malformed, could not reach the end",
  "0801": "unmarshal failed. proto: wrong wireType = 0 for field Data",
  "0b": "unmarshal failed. proto: wrong wireType = 3 for field Data",
  "0c": "unmarshal failed. proto: PBNode: wiretype end group for non-group",
  ffffffffffffffffffffff01: "unmarshal failed. proto: integer overflow",
  "0affffffffffffffffff01": "unmarshal failed. proto: negative length found during unmarshaling",
  "12000a05": "unmarshal failed. unexpected EOF",
};

test("an invalid dag-pb message is rejected with the reference's text", () => {
  for (const [given, message] of Object.entries(badPb)) {
    const whole = `incorrectly formatted merkledag node: ${message}`;
    assert.throws(() => parsePb(Buffer.from(given, "hex")), { name: "NodeError", message: whole }, given);
  }
  assert.equal(text(parsePb(Buffer.from("1b0801230a00241c0a0161", "hex")).data), "a", "groups are passed over");
});
