import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import * as cbor from "@ipld/dag-cbor";
import { CID } from "multiformats/cid";
import { parsePath } from "#node/content/resolver/path.ts";
import { resolvePath } from "#node/content/resolver/resolve.ts";
import { dagCbor } from "#node/formats/cid/codecs.ts";
import { multihash, sha256 } from "#node/formats/cid/hashes.ts";
import { Trees } from "#test/unit/modules/mod_node/content/unixfs/trees.ts";

const known = "QmdfTbBqBPQ7VNxZEYEj14VmRuZBkqFbiwReogJgS1zR1n";

interface Vector {
  readonly group: string;
  readonly input: { readonly path: string };
  readonly expect: { readonly valid: boolean };
}

const vectors = JSON.parse(
  readFileSync(new URL("../../../../../fixtures/vectors/storage.json", import.meta.url), "utf8"),
);

describe("a path is accepted or rejected as in the reference", () => {
  for (const { input, expect } of (vectors.vectors as Vector[]).filter(({ group }) => group === "path")) {
    if (input?.path === undefined) continue;
    test(input.path, () => {
      if (expect.valid) assert.ok(parsePath(input.path));
      else assert.throws(() => parsePath(input.path), { name: "NodeError" });
    });
  }

  const refused: Record<string, string> = {
    "": "invalid path \"\": path does not begin with '/'",
    "/ipfs/": 'invalid path "/ipfs/": not enough path components',
    "/x/y": 'invalid path "/x/y": unknown namespace "x"',
    "/x": "invalid path \"/x\": path does not begin with '/'",
    "/ipfs/x": 'invalid path "/ipfs/x": invalid CID: cid too short',
    qmdftbbqbpq7vnxzeyej14vmruzbkqfbiwreogjgs1zr1n:
      'invalid path "qmdftbbqbpq7vnxzeyej14vmruzbkqfbiwreogjgs1zr1n": selected encoding not supported (possible lowercased CIDv0; consider converting to a case-agnostic CIDv1, such as base32)',
  };
  const climbing: Record<string, string> = {
    [`${known}/..`]: `invalid path "/ipfs/${known}/..": empty`,
    [`/ipfs/${known}/../x`]: `invalid path "/ipfs/${known}/../x": invalid CID: cid too short`,
    [`/ipld/${known}/../x/y`]: `invalid path "/ipld/${known}/../x/y": invalid CID: cid too short`,
    [`/ipfs/${known}/../../etc/passwd`]: "unsupported path namespace: etc",
    [`${known}/../..`]: "unsupported path namespace: ",
    "/ipns/x/..": 'invalid path "/ipns/x/..": ipns path missing IPNS ID',
    [`${known}\0`]: `invalid path "${known}\\x00": selected encoding not supported`,
    '/x"y/z': 'invalid path "/x\\"y/z": unknown namespace "x\\"y"',
  };
  for (const [text, message] of Object.entries({ ...refused, ...climbing })) {
    test(`the error text names the reason: ${text}`, () => assert.throws(() => parsePath(text), { message }));
  }

  test("bare, full and neutral forms give the same path", () => {
    assert.equal(parsePath(`${known}/../${known}/a`).text, `/ipfs/${known}/a`);
    for (const text of [`${known}/a//b`, `/ipfs/${known}/a/./b/`, `/store/${known}/x/../a/b`]) {
      assert.equal(parsePath(text).text, `/ipfs/${known}/a/b`);
    }
    assert.equal(parsePath("/name/example.org/a").text, "/ipns/example.org/a");
  });
});

describe("a path is followed", () => {
  test("through plain and sharded directories alike, but below /ipld by the stored names", async () => {
    for (const sharded of [false, true]) {
      const trees = new Trees();
      const all = await trees.add({ "d/a/b": "b", "d/c": "c" }, { sharded });
      const resolved = await resolvePath(parsePath(`${all.get("d")}/a/b`), trees.read);
      assert.ok(resolved.cid.equals(all.get("d/a/b")));
      const raw = resolvePath(parsePath(`/ipld/${all.get("d")}/a`), trees.read);
      if (sharded) await assert.rejects(raw, /no link named "a" under/);
      else assert.ok((await raw).cid.equals(all.get("d/a")));
    }
  });

  test("and an error names a missing link and its node", async () => {
    const trees = new Trees();
    const all = await trees.add({ "d/a": "a" });
    await assert.rejects(resolvePath(parsePath(`${all.get("d")}/b`), trees.read), {
      message: `no link named "b" under ${all.get("d")}`,
    });
    await assert.rejects(resolvePath(parsePath(`${all.get("d")}/b"\0`), trees.read), {
      message: `no link named "b\\"\\x00" under ${all.get("d")}`,
    });
  });

  test("into CBOR nodes, over links and to a value inside", async () => {
    const trees = new Trees();
    const file = (await trees.add({ f: "file" })).get("f") as CID;
    const bytes = cbor.encode({ list: [1, { link: file }], text: "x" });
    const cid = CID.createV1(dagCbor, await multihash(sha256, bytes));
    trees.blocks.set(cid.toString(), bytes);
    const follow = (rest: string) => resolvePath(parsePath(`${cid}/${rest}`), trees.read);
    assert.ok((await follow("list/1/link")).cid.equals(file));
    assert.deepEqual((await follow("list/0")).remainder, ["list", "0"]);
    assert.ok((await follow("text")).cid.equals(cid));
    await assert.rejects(follow("none"), { message: "no such link found" });
    await assert.rejects(follow("list/9"), { message: "array index out of range" });
    await assert.rejects(follow("text/more"), { message: "tried to resolve through object that had no links" });
  });
});
