import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import type { MetadataStore } from "#node/storage/metadata/store.ts";
import { WriteBehind } from "#node/storage/metadata/write_behind.ts";
import { eventually } from "#test/support/eventually.ts";

const bytes = (text: string) => Buffer.from(text);
const never = { delayMs: 2 ** 31 - 1 };

const delayed = async (metadata: MetadataStore) =>
  (await Array.fromAsync(metadata.range())).map(([key, value]) => [key, Buffer.from(value).toString()]);
const seen = async (behind: WriteBehind, prefix = "") =>
  (await Array.fromAsync(behind.range(prefix))).map(([key, value]) => [key, Buffer.from(value).toString()]).sort();

test("changes are visible immediately and written later, together", async () => {
  const metadata = memoryMetadata();
  await metadata.transaction((writer) => {
    writer.put("room/a", bytes("1"));
    writer.put("room/b", bytes("1"));
    writer.put("other", bytes("1"));
  });
  const behind = new WriteBehind(metadata, "room/", never);
  behind.set("a", bytes("2"));
  behind.set("b", undefined);
  behind.set("c", bytes("2"));
  assert.equal(String(await behind.get("a")), "2");
  assert.equal(await behind.get("b"), undefined);
  const after = [
    ["a", "2"],
    ["c", "2"],
  ];
  assert.deepEqual(await seen(behind), after);
  assert.deepEqual(await seen(behind, "c"), [["c", "2"]]);
  assert.deepEqual(Buffer.from((await metadata.get("room/a")) ?? []), bytes("1"));
  await behind.flush();
  assert.deepEqual(await seen(behind), after);
  assert.deepEqual(await delayed(metadata), [["other", "1"], ...after.map(([key, value]) => [`room/${key}`, value])]);
});

test("changes that are being written are visible, too", async () => {
  const metadata = memoryMetadata();
  const gate = Promise.withResolvers<void>();
  const slow: MetadataStore = {
    ...metadata,
    transaction: async (run) => {
      await gate.promise;
      return metadata.transaction(run);
    },
  };
  const behind = new WriteBehind(slow, "", never);
  behind.set("a", bytes("1"));
  const first = behind.flush();
  behind.set("b", bytes("1"));
  const second = behind.flush();
  const third = behind.flush();
  behind.set("c", bytes("1"));
  assert.deepEqual(await seen(behind), [
    ["a", "1"],
    ["b", "1"],
    ["c", "1"],
  ]);
  gate.resolve();
  await Promise.all([first, second, third]);
  assert.deepEqual(await delayed(metadata), [
    ["a", "1"],
    ["b", "1"],
    ["c", "1"],
  ]);
});

test("many changes are not delayed", async () => {
  const metadata = memoryMetadata();
  const behind = new WriteBehind(metadata, "", { ...never, maxChanges: 2 });
  behind.set("a", bytes("1"));
  behind.set("b", bytes("1"));
  await behind.flush();
  assert.equal((await delayed(metadata)).length, 2);
});

test("changes after closing are dropped", async () => {
  const metadata = memoryMetadata();
  const behind = new WriteBehind(metadata, "", never);
  behind.set("a", bytes("1"));
  await behind.close();
  behind.set("b", bytes("1"));
  await behind.close();
  assert.deepEqual(await delayed(metadata), [["a", "1"]]);
});

test("changes that could not be written are retained, and written when the store is back; later ones win", async () => {
  const metadata = memoryMetadata();
  let tries = 0;
  const away: MetadataStore = {
    ...metadata,
    transaction: async (run) => {
      tries += 1;
      if (tries <= 2) throw new Error("the store is away");
      return metadata.transaction(run);
    },
  };
  const behind = new WriteBehind(away, "", { delayMs: 1 });
  behind.set("a", bytes("1"));
  behind.set("b", bytes("1"));
  await assert.rejects(behind.flush(), /away/);
  behind.set("b", bytes("2"));
  assert.deepEqual(await seen(behind), [
    ["a", "1"],
    ["b", "2"],
  ]);
  await eventually("they are written", async () => (await delayed(metadata)).length === 2);
  assert.deepEqual(await delayed(metadata), [
    ["a", "1"],
    ["b", "2"],
  ]);
  assert.equal(tries, 3);
});
