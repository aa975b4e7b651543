/** Keys that hosts have in common: what each may do with them, and what the store itself can read of them. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { openNode } from "#node/open.ts";
import { generateKey } from "#node/storage/keystore/key.ts";
import { Keystore } from "#node/storage/keystore/keystore.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { SharedKeys } from "#node/storage/shared/keys.ts";
import { SharedPlace } from "#test/support/shared_hosts.ts";
import { emptyFolder } from "../repo/support.ts";

const secret = "a secret that the operator has made";

test("what one host makes, renames and removes the others have; the store has it encrypted only", async () => {
  const place = new SharedPlace();
  const [a, b] = [await place.join(), await place.join()];
  const [first, second] = [await generateKey({ type: "ed25519" }), await generateKey({ type: "ed25519" })];
  const [one, other] = [
    new Keystore(await SharedKeys.open(a.metadata, secret), first.id),
    new Keystore(await SharedKeys.open(b.metadata, secret), second.id),
  ];
  const names = async (keys: Keystore) => (await keys.list()).map(({ name }) => name);
  const { id } = await one.generate("site", { type: "ed25519" });
  assert.ok((await other.get("site"))?.id.equals(id));
  assert.ok((await other.list())[0]?.id.equals(second.id), "its own identity stays its own");
  const bytes = await one.export("site");
  for (const { entries } of place.log.commits) {
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

test("two hosts that make a key of one name at once: one does, and the other is told", async () => {
  const place = new SharedPlace();
  const hosts = [await place.join(), await place.join()];
  const key = await generateKey({ type: "ed25519" });
  const keys = await Promise.all(
    hosts.map(async ({ metadata }) => new Keystore(await SharedKeys.open(metadata, secret), key.id)),
  );
  const made = await Promise.allSettled(keys.map((each) => each.generate("site", { type: "ed25519" })));
  assert.deepEqual(made.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
});

test("another secret, or a short one, is refused at the start; a value that was put elsewhere is not taken", async () => {
  const metadata = memoryMetadata();
  await assert.rejects(SharedKeys.open(metadata, "short"), { code: "KEYS_SECRET_SHORT" });
  const held = await SharedKeys.open(metadata, secret);
  await assert.rejects(SharedKeys.open(metadata, `${secret}.`), { code: "KEYS_SECRET_WRONG" });
  await held.add("one", Buffer.from("of one"));
  await held.add("other", Buffer.from("of the other"));
  const [first, second] = await Array.fromAsync(metadata.range({ prefix: "keys/" }));
  await metadata.transaction((writer) => writer.put(first?.[0] as string, second?.[1] as Uint8Array));
  const read = await Promise.allSettled([held.get("one"), held.get("other")]);
  const refused = read.flatMap((each) => (each.status === "rejected" ? [String(each.reason)] : []));
  assert.equal(refused.length, 1);
  assert.match(refused[0] as string, /the shared key (one|other) cannot be read/);
});

test("nodes with shared keys publish under them, each its own identity under its own", async (t) => {
  const place = new SharedPlace();
  const [one, other] = [await host(t, place), await host(t, place)];
  const { id } = await one.keys.generate("site", { type: "ed25519" });
  await other.names.publish(await other.names.key("site"), "/ipfs/bafkqaaa", { offline: true });
  assert.equal(await one.names.resolve(id.toString(), { offline: true }), "/ipfs/bafkqaaa");
  assert.ok(!(await one.names.key("self")).id.equals((await other.names.key("self")).id));
});

async function host(t: TestContext, place: SharedPlace) {
  const stores = async () => {
    const joined = await place.join();
    return { ...joined, keys: await SharedKeys.open(joined.metadata, secret) };
  };
  const node = await openNode({ repo: await emptyFolder(t), offline: true, stores });
  t.after(() => node.close());
  return node;
}
