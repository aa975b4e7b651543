import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { createNode, type Node } from "#node/index.ts";
import { openS3 } from "#node/storage/shared/s3/client.ts";
import { s3Settings } from "#node/storage/shared/settings.ts";
import { noSharedStore, type SharedStore, sharedStore } from "#test/support/engines/shared_store.ts";

describe("objects and a database that do not belong together are refused at the start", { skip: noSharedStore }, () => {
  /**
   * Creates a store with content, and returns a function that opens another node with other
   * settings.
   */
  async function stored(t: TestContext) {
    const store: SharedStore = await sharedStore();
    const folder = await mkdtemp(join(tmpdir(), "modhost-test-"));
    t.after(() => rm(folder, { recursive: true, force: true }));
    let count = 0;
    const open = async (change: Partial<SharedStore["settings"]> = {}): Promise<Node> => {
      count += 1;
      const repo = join(folder, String(count));
      const node = await createNode({ repo, store: { ...store.settings, ...change }, offline: true });
      t.after(() => node.close());
      return node;
    };
    const node = await open();
    const { cid } = await node.add("of the first store");
    await node.close();
    return { ...store, open, cid };
  }

  test("a start with another schema on the same prefix fails: the objects would look like orphans", async (t) => {
    const { settings, open, cid } = await stored(t);
    await assert.rejects(open({ sql: `${settings.sql}_other` }), /store\d+\/store says .*belong to another store/);
    assert.ok((await (await open()).block.get(cid)).length > 0);
  });

  test("a start with another prefix or an emptied bucket fails: every block would seem to be lost", async (t) => {
    const { settings, open, cid } = await stored(t);
    await assert.rejects(open({ s3: `${settings.s3}-other` }), /has none of the objects of this store/);
    // The failed start has written nothing that would make the next one succeed.
    await assert.rejects(open({ s3: `${settings.s3}-other` }), /has none of the objects of this store/);
    assert.ok((await (await open()).block.get(cid)).length > 0);
    const objects = openS3(s3Settings(settings));
    t.after(() => objects.close());
    for await (const facts of objects.list("")) await objects.delete(facts.map(({ key }) => key));
    await assert.rejects(open(), /has none of the objects of this store/);
  });
});
