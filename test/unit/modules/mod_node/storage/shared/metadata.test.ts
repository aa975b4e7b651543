import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openLmdbMetadata } from "#node/storage/metadata/lmdb.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import type { MetadataStore, MetadataWriter } from "#node/storage/metadata/store.ts";
import { SharedMetadata } from "#node/storage/shared/metadata.ts";
import { MemoryLog } from "#test/support/engines/memory_log.ts";
import { eventually } from "#test/support/eventually.ts";
import { metadataContract } from "#test/unit/modules/mod_node/storage/metadata/contract.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const text = (value: Uint8Array | undefined) => value && Buffer.from(value).toString();
const put = (store: MetadataStore, key: string, value: string) =>
  store.transaction((writer) => writer.put(key, bytes(value)));
const listed = async (store: MetadataStore) =>
  (await Array.fromAsync(store.range())).map(([key, value]) => `${key}=${text(value)}`);

async function hostOf(log: MemoryLog, copy = memoryMetadata()) {
  const client = log.open();
  return { client, metadata: await SharedMetadata.open(client, copy) };
}

metadataContract("shared, copy in memory", async () => (await hostOf(new MemoryLog())).metadata);

let folders = 0;
const home = mkdtempSync(join(tmpdir(), "modhost-shared-"));
after(() => rm(home, { recursive: true }));
metadataContract("shared, copy in LMDB", async () => {
  folders += 1;
  return (await hostOf(new MemoryLog(), await openLmdbMetadata(join(home, String(folders))))).metadata;
});

test("every host immediately reads what another host has written", async () => {
  const log = new MemoryLog();
  const a = await hostOf(log);
  const b = await hostOf(log);
  await put(a.metadata, "k", "1");
  assert.equal(text(await b.metadata.get("k")), "1");
  await put(b.metadata, "k", "2");
  assert.deepEqual(await listed(a.metadata), ["k=2"]);
});

test("counters of several hosts lose no step", async () => {
  const log = new MemoryLog();
  const hosts = [await hostOf(log), await hostOf(log), await hostOf(log)];
  const count = async ({ metadata }: (typeof hosts)[0]) => {
    for (;;) {
      const blocked = await metadata.get("n");
      if (await metadata.compareAndSet("n", blocked, bytes(String(Number(text(blocked) ?? 0) + 1)))) return;
    }
  };
  const add = ({ metadata }: (typeof hosts)[0]) =>
    metadata.transaction((writer) => writer.put("m", bytes(String(Number(text(writer.get("m")) ?? 0) + 1))));
  await Promise.all(hosts.flatMap((host) => Array.from({ length: 20 }, () => [count(host), add(host)])).flat());
  for (const { metadata } of hosts) assert.deepEqual(await listed(metadata), ["m=60", "n=60"]);
});

test("a transaction that throws does not affect others in its commit, and concurrent calls share one", async () => {
  const log = new MemoryLog();
  const { client, metadata } = await hostOf(log);
  await put(metadata, "k", "0");
  const own = new Error("of mine");
  const settled = await Promise.allSettled([
    put(metadata, "a", "1"),
    metadata.transaction((writer) => {
      writer.put("b", bytes("1"));
      throw own;
    }),
    put(metadata, "c", "1"),
    client.commit(() => {
      throw own;
    }),
    client.commit(() => ({ entries: [], result: 1 })),
  ]);
  assert.deepEqual(
    settled.map((outcome) => (outcome.status === "rejected" ? outcome.reason : true)),
    [true, own, true, own, true],
  );
  assert.deepEqual(await listed(metadata), ["a=1", "c=1", "k=0"]);
  assert.ok(log.head <= 3);
});

test("the copy of a host that was away continues at its position or from a snapshot", async (t) => {
  const log = new MemoryLog();
  log.pageSize = 3;
  const folder = join(await emptyFolder(t), "copy");
  const first = await hostOf(log, await openLmdbMetadata(folder));
  for (let at = 0; at < 10; at += 1) await put(first.metadata, `k${at}`, "old");
  await first.metadata.close();
  await first.client.close();

  const other = await hostOf(log);
  await put(other.metadata, "k3", "new");
  await other.metadata.transaction((writer) => writer.delete("k4"));
  const second = await hostOf(log, await openLmdbMetadata(folder));
  const expected = ["k0=old", "k1=old", "k2=old", "k3=new", ...[5, 6, 7, 8, 9].map((at) => `k${at}=old`)];
  assert.deepEqual(await listed(second.metadata), expected);
  assert.equal(second.client.counts.snapshots, 0);
  await second.metadata.close();
  await second.client.close();

  await other.metadata.transaction((writer) => writer.delete("k5"));
  await put(other.metadata, "k9", "new");
  log.trim();
  const third = await hostOf(log, await openLmdbMetadata(folder));
  const summed = await third.metadata.transaction((writer) => [...writer.range()].map(([key]) => key).join());
  assert.equal(summed, "k0,k1,k2,k3,k6,k7,k8,k9");
  assert.equal(text(await third.metadata.get("k9")), "new");
  assert.equal(await third.metadata.get("k5"), undefined);
  assert.equal(third.client.counts.snapshots, 1);
  await third.metadata.close();
});

test("calls fail without effect while the log is unreachable, and work again afterwards", async () => {
  const log = new MemoryLog();
  const { metadata } = await hostOf(log);
  await put(metadata, "k", "1");
  log.available = false;
  const unavailable = { code: "STORE_UNAVAILABLE" };
  await assert.rejects(metadata.get("k"), unavailable);
  await assert.rejects(put(metadata, "k", "2"), unavailable);
  await assert.rejects(listed(metadata), unavailable);
  log.available = true;
  assert.deepEqual(await listed(metadata), ["k=1"]);
});

test("a copy that cannot be written refuses changes, and continues when it can be written", async () => {
  const inner = memoryMetadata();
  let isFull = false;
  const put1 = (writer: MetadataWriter): MetadataWriter => ({
    ...writer,
    get: (key) => writer.get(key),
    range: (range) => writer.range(range),
    put(key, value) {
      if (isFull) throw new Error("no room");
      writer.put(key, value);
    },
  });
  const copy: MetadataStore = { ...inner, transaction: (run) => inner.transaction((writer) => run(put1(writer))) };
  const client = new MemoryLog().open();
  const metadata = await SharedMetadata.open(client, copy, { retryMs: 1 });
  await put(metadata, "k", "1");
  isFull = true;
  await put(metadata, "k", "2");
  await assert.rejects(listed(metadata), /no room/);
  await assert.rejects(put(metadata, "k", "3"), /no room/);
  assert.equal(text(await metadata.get("k")), "2");
  isFull = false;
  await eventually("the copy is written", () =>
    put(metadata, "k", "4").then(
      () => true,
      () => false,
    ),
  );
  assert.deepEqual(await listed(metadata), ["k=4"]);
  await metadata.close();
});

test("closing a copy while the log is read lets the log end", { timeout: 60_000 }, async () => {
  const sharedLog = new MemoryLog();
  sharedLog.pageSize = 1;
  const one = sharedLog.open();
  const log = sharedLog.open();
  const metadata = await SharedMetadata.open(log, memoryMetadata());
  for (const key of ["a", "b", "c"])
    await one.commit(() => ({ entries: [{ kind: "metadata", changes: [[key, Buffer.from(key)]] }], result: 0 }));
  const reads = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  sharedLog.onStep = (step, session) => {
    if (step !== "read" || session !== log.session) return;
    reads.resolve();
    return gate.promise;
  };
  const look = assert.rejects(log.refresh(), { code: "STORE_CLOSED" });
  await reads.promise;
  await metadata.close();
  gate.resolve();
  await log.close();
  await look;
  await one.close();
});
