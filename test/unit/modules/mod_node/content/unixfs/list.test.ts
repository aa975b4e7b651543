import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { CID } from "multiformats/cid";
import { entries, lookup } from "#node/content/unixfs/list.ts";
import { type UnixfsNode, unixfsNode } from "#node/content/unixfs/node.ts";
import { Trees } from "./trees.ts";

const names = Array.from({ length: 3000 }, (_, at) => `file ${at}`);
const files = Object.fromEntries(names.map((name) => [`d/${name}`, name]));

async function directory(trees: Trees, sharded: boolean): Promise<{ node: UnixfsNode; all: ReadonlyMap<string, CID> }> {
  const all = await trees.add(files, { sharded });
  const cid = all.get("d") as CID;
  const node = unixfsNode(cid, await trees.read(cid));
  assert.ok(node);
  return { node, all };
}

for (const sharded of [false, true]) {
  describe(sharded ? "a sharded directory" : "a plain directory", () => {
    test("every entry is listed once, under its name", async () => {
      const trees = new Trees();
      const { node, all } = await directory(trees, sharded);
      const found: string[] = [];
      for await (const { name, cid } of entries(node, trees.read)) {
        found.push(name);
        assert.ok(cid.equals(all.get(`d/${name}`)));
      }
      assert.deepEqual(found.toSorted(), names.toSorted());
    });

    test("a name is found, and a missing name is not", async () => {
      const trees = new Trees();
      const { node, all } = await directory(trees, sharded);
      trees.requested.length = 0;
      assert.ok((await lookup(node, "file 1234", trees.read))?.cid.equals(all.get("d/file 1234")));
      assert.equal(await lookup(node, "file 12345", trees.read), undefined);
      assert.equal(await lookup(node, "", trees.read), undefined);
      assert.ok(trees.requested.length <= 8, `${trees.requested.length} shards`);
    });
  });
}
