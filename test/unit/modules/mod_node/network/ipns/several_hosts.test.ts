/** Publishes names on several hosts of a shared store. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { publishedKey } from "#node/network/ipns_record/keys.ts";
import { decodeRecord } from "#node/network/ipns_record/record.ts";
import { openNode } from "#node/node/open.ts";
import { MemorySharedStore } from "#test/support/shared_hosts.ts";
import { emptyFolder } from "../../storage/repo/support.ts";

async function host(t: TestContext, sharedStore: MemorySharedStore) {
  const node = await openNode({ repo: await emptyFolder(t), offline: true, stores: () => sharedStore.join() });
  t.after(() => node.close());
  return node;
}

test("two hosts that publish under one key at once never give two records the same sequence number", async (t) => {
  const sharedStore = new MemorySharedStore();
  const one = await host(t, sharedStore);
  const other = await host(t, sharedStore);
  await one.keys.generate("ours", { type: "ed25519" });
  await other.keys.import("ours", await one.keys.export("ours"));
  const key = await one.keys.get("ours");
  assert.ok(key);
  const publish = (node: typeof one, text: string) => node.names.publish(key, `/ipns/${text}`, { offline: true });
  await Promise.all(
    Array.from({ length: 8 }, (_, at) => [
      publish(one, `one-${at}.example`),
      publish(other, `other-${at}.example`),
    ]).flat(),
  );
  const written = sharedStore.log.commits
    .flatMap(({ entries }) => entries)
    .flatMap((entry) => (entry.kind === "metadata" ? entry.changes : []))
    .flatMap(([name, value]) => (name === publishedKey(key.id) && value !== undefined ? [decodeRecord(value)] : []));
  assert.deepEqual(
    written.map(({ sequence }) => Number(sequence)),
    Array.from({ length: 16 }, (_, at) => at),
  );
  assert.equal(new Set(written.map(({ value }) => Buffer.from(value).toString())).size, 16);
});
