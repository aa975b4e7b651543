/** Shared keys: the rights of each host, and what the store itself can read of them. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { openNode } from "#node/node/open.ts";
import { generateKey } from "#node/storage/keystore/key.ts";
import { Keystore } from "#node/storage/keystore/keystore.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { SharedKeys } from "#node/storage/shared/keys.ts";
import { MemorySharedStore } from "#test/support/shared_hosts.ts";
import { emptyFolder } from "../repo/support.ts";

const secret = "a secret that the operator has made";

test("keys that one host creates, renames and removes are shared, and the store only has them encrypted", async () => {
  const cluster = new MemorySharedStore();
  const a = await cluster.join();
  const b = await cluster.join();
  const first = await generateKey({ type: "ed25519" });
  const second = await generateKey({ type: "ed25519" });
  const one = new Keystore(await SharedKeys.open(a.metadata, secret), first.id);
  const other = new Keystore(await SharedKeys.open(b.metadata, secret), second.id);
  const names = async (keys: Keystore) => (await keys.list()).map(({ name }) => name);
  const { id } = await one.generate("site", { type: "ed25519" });
  assert.ok((await other.get("site"))?.id.equals(id));
  assert.ok((await other.list())[0]?.id.equals(second.id), "its own identity stays its own");
  const bytes = await one.export("site");
  for (const { entries } of cluster.log.commits) {
    assert.ok(!Buffer.from(JSON.stringify(entries)).includes(Buffer.from(bytes).toString("base64")));
    for (const entry of entries) {
      if (entry.kind !== "metadata") continue;
      for (const [, value] of entry.changes)
        assert.ok(!Buffer.from(value ?? []).includes(Buffer.from(bytes.subarray(4))));
    }
  }
  await assert.rejects(other.generate("site", { type: "ed25519" }), /key with name 'site' already exists/);
  await other.generate("spare", { type: "ed25519" });
  await assert.rejects(other.rename("spare", "site", false), /already exists, refusing to overwrite/);
  assert.equal((await one.rename("site", "page", false)).overwritten, false);
  assert.deepEqual(await names(other), ["self", "page", "spare"]);
  assert.deepEqual(await other.export("page"), bytes);
  assert.equal((await other.rename("spare", "page", true)).overwritten, true);
  assert.ok(!(await one.get("page"))?.id.equals(id));
  await one.remove("page");
  await assert.rejects(other.remove("page"), /no key named page was found/);
  assert.deepEqual(await names(other), ["self"]);
});

test("only one of two hosts that create a key of one name gets it, and the other is refused", async () => {
  const cluster = new MemorySharedStore();
  const hosts = [await cluster.join(), await cluster.join()];
  const key = await generateKey({ type: "ed25519" });
  const keys = await Promise.all(
    hosts.map(async ({ metadata }) => new Keystore(await SharedKeys.open(metadata, secret), key.id)),
  );
  const made = await Promise.allSettled(keys.map((each) => each.generate("site", { type: "ed25519" })));
  assert.deepEqual(made.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
});

test("a wrong or short secret is refused at the start, and a value that was copied to another name is refused", async () => {
  const metadata = memoryMetadata();
  await assert.rejects(SharedKeys.open(metadata, "short"), { code: "KEYS_SECRET_SHORT" });
  const stored = await SharedKeys.open(metadata, secret);
  await assert.rejects(SharedKeys.open(metadata, `${secret}.`), { code: "KEYS_SECRET_WRONG" });
  await stored.add("one", Buffer.from("of one"));
  await stored.add("other", Buffer.from("of the other"));
  const [first, second] = await Array.fromAsync(metadata.range({ prefix: "keys/" }));
  await metadata.transaction((writer) => writer.put(first?.[0] as string, second?.[1] as Uint8Array));
  const read = await Promise.allSettled([stored.get("one"), stored.get("other")]);
  const refused = read.flatMap((each) => (each.status === "rejected" ? [String(each.reason)] : []));
  assert.equal(refused.length, 1);
  assert.match(refused[0] as string, /the shared key (one|other) cannot be read/);
});

test("nodes with shared keys publish under them, and each own identity under its own", async (t) => {
  const cluster = new MemorySharedStore();
  const one = await host(t, cluster);
  const other = await host(t, cluster);
  const { id } = await one.keys.generate("site", { type: "ed25519" });
  await other.names.publish(await other.names.key("site"), "/ipfs/bafkqaaa", { offline: true });
  assert.equal(await one.names.resolve(id.toString(), { offline: true }), "/ipfs/bafkqaaa");
  assert.ok(!(await one.names.key("self")).id.equals((await other.names.key("self")).id));
});

async function host(t: TestContext, cluster: MemorySharedStore) {
  const stores = async () => {
    const joined = await cluster.join();
    return { ...joined, keys: await SharedKeys.open(joined.metadata, secret) };
  };
  const node = await openNode({ repo: await emptyFolder(t), offline: true, stores });
  t.after(() => node.close());
  return node;
}
