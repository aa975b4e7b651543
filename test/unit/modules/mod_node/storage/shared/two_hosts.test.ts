/**
 * Two nodes on one store: what they share, what each has for itself, and what a shared store
 * refuses.
 */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createNode, type MetadataStore, memoryStores, type Node } from "modhost/node";
import { MemorySharedStore } from "#test/support/shared_hosts.ts";
import { emptyFolder } from "../repo/support.ts";

async function host(t: TestContext, cluster: MemorySharedStore) {
  const own = await cluster.join();
  const node = await createNode({ repo: await emptyFolder(t), offline: true, stores: async () => own });
  t.after(() => node.close());
  return { node, own };
}

const prefixes = async (store: MetadataStore): Promise<string[]> => {
  const found = new Set<string>();
  for await (const [key] of store.range()) found.add(key.slice(0, key.indexOf("/") + 1));
  return [...found].sort();
};

const pins = async (node: Node): Promise<string[]> =>
  (await Array.fromAsync(node.pin.ls())).map(({ cid }) => String(cid)).sort();

test("pins and names of one host are shared, and the first content of a repo is made once", async (t) => {
  const stores = new MemorySharedStore();
  const one = await host(t, stores);
  const other = await host(t, stores);
  const { cid } = await one.node.add("of the first");
  assert.deepEqual(await pins(other.node), await pins(one.node));
  assert.ok((await pins(other.node)).includes(String(cid)));
  await other.node.pin.rm(cid);
  assert.ok(!(await pins(one.node)).includes(String(cid)));
  const ids = [one, other].map(({ node }) => String(node.lowLevel.repo.identity.peerId));
  for (const { node } of [one, other]) {
    for (const id of ids)
      assert.equal(
        await node.lowLevel.names.resolve(id, { offline: true }),
        "/ipfs/QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn",
      );
  }
  // A third host does not pin again what was unpinned.
  for await (const pin of one.node.pin.ls()) await one.node.pin.rm(pin.cid);
  const third = await host(t, stores);
  assert.deepEqual(await pins(third.node), []);
});

test("each host has its own data for itself, and shares everything else", async (t) => {
  const stores = new MemorySharedStore();
  const { node, own } = await host(t, stores);
  await node.add("content");
  await node.lowLevel.metadata.transaction((writer) => writer.put("modules/mine/key", new Uint8Array(1)));
  assert.deepEqual(await prefixes(own.metadata), ["ipns/", "modules/", "node/", "pins/"]);
  assert.equal(node.lowLevel.hostMetadata, own.hostMetadata);
  assert.deepEqual(await prefixes(own.hostMetadata), []);
  const alone = await createNode({ repo: await emptyFolder(t), offline: true, stores: async () => memoryStores() });
  t.after(() => alone.close());
  assert.equal(alone.lowLevel.hostMetadata, alone.lowLevel.metadata);
  assert.equal(alone.lowLevel.shared, undefined);
});

test("a shared store refuses the filestore and the urlstore at the start, and names the setting", async (t) => {
  for (const key of ["FilestoreEnabled", "UrlstoreEnabled"]) {
    const options = { repo: await emptyFolder(t), offline: true };
    const own = await createNode({ ...options, stores: async () => memoryStores() });
    await own.config.set(`Experimental.${key}`, true);
    await own.close();
    await assert.rejects(createNode({ ...options, stores: () => new MemorySharedStore().join() }), {
      code: "REFERENCES_SHARED",
      message: /files of one host.*Experimental\.FilestoreEnabled.*false/,
    });
  }
});
