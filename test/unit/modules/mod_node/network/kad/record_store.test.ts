import assert from "node:assert/strict";
import { test } from "node:test";
import { Record } from "@libp2p/kad-dht";
import { Key } from "interface-datastore";
import { type PeerId, parsePeerId } from "#node/formats/peer_id.ts";
import { recordKey } from "#node/network/ipns_record/keys.ts";
import { signRecord } from "#node/network/ipns_record/sign.ts";
import { formatTimestamp, timestampAfter } from "#node/network/ipns_record/timestamp.ts";
import { RecordDatastore, RecordStore, valueKey } from "#node/network/kad/record_store.ts";
import { generateKey } from "#node/storage/keystore/key.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";

const self = parsePeerId("12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5");
const other = parsePeerId("12D3KooWEfnzCZ79qLke7bqPoJvXGMBTfwMb5gZfcdYGxmj1TFtu");
const hour = 3600 * 1000;
const block = "/provider/ciqfrslwmexpphpuzzrgjbtvvjldkxewnjlaphhzdfhqf7gyb66nnoi";

function open(metadata = memoryMetadata(), maxRecords?: number) {
  const clock = { now: 1_700_000_000_000 };
  const records = new RecordStore({
    metadata,
    self,
    now: () => clock.now,
    ...(maxRecords === undefined ? {} : { maxRecords }),
  });
  return { metadata, clock, records };
}

const time = Buffer.from([1]);
const keysOf = async (records: RecordStore) => (await Array.fromAsync(records.range(`${block}/`))).map(([key]) => key);

const signed = async (sequence: bigint, key = generateKey({ type: "ed25519" })) => {
  const made = await key;
  const validity = formatTimestamp(timestampAfter(hour));
  const value = await signRecord(made, { value: Buffer.from("/ipfs/x"), validity, sequence, ttl: 0n });
  const name = recordKey(made.id);
  return { made, name, value, bytes: new Record(name, value, new Date()).serialize().subarray() };
};

test("a provider record is stored for a day", async () => {
  const { records, clock } = open();
  await records.put(`${block}/${other}`, time);
  clock.now += 24 * hour;
  assert.deepEqual(await keysOf(records), [`${block}/${other}`]);
  clock.now += 1;
  assert.deepEqual(await keysOf(records), []);
  await records.put(`${block}/${other}`, time);
  assert.deepEqual(await keysOf(records), [`${block}/${other}`]);
});

test("a value is stored for a day and a half, then removed", async () => {
  const { records, clock, metadata } = open();
  const { name, bytes, value } = await signed(1n);
  await records.put(valueKey(name), bytes);
  clock.now += 36 * hour;
  assert.deepEqual(await records.value(name), value);
  clock.now += 1;
  assert.equal(await records.value(name), undefined);
  await records.sweep();
  await records.close();
  assert.deepEqual(await Array.fromAsync(metadata.range({ prefix: "routing/" })), []);
});

test("the better record stays", async () => {
  const { records } = open();
  const first = await signed(1n);
  const second = await signed(2n, Promise.resolve(first.made));
  await records.put(valueKey(first.name), second.bytes);
  await assert.rejects(records.put(valueKey(first.name), first.bytes), {
    message: "can't replace a newer value with an older value",
  });
  await records.put(valueKey(first.name), second.bytes);
  assert.deepEqual(await records.value(first.name), second.value);
});

test("the best record of concurrent puts stays", async () => {
  const { records } = open();
  const first = await signed(1n);
  const made = Promise.resolve(first.made);
  const second = await signed(2n, made);
  const third = await signed(3n, made);
  const put = ({ bytes }: typeof first) => records.put(valueKey(first.name), bytes);
  const outcomes = await Promise.allSettled([first, third, second].map(put));
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["fulfilled", "fulfilled", "rejected"],
  );
  assert.deepEqual(await records.value(first.name), third.value);
});

test("records survive reopening the store", async () => {
  const { records, metadata } = open();
  await records.put(`${block}/${other}`, time);
  await records.close();
  assert.deepEqual(await keysOf(open(metadata).records), [`${block}/${other}`]);
});

const providerKey = (number: number | string, peer: PeerId | string = other) => `/provider/block${number}/${peer}`;
const has = async (records: RecordStore, key: string) => (await records.get(key)) !== undefined;
const fill = async (records: RecordStore, most: number) => {
  for (let number = 0; number < most; number += 1) await records.put(providerKey(number), time);
};

test("above 65,536 records of peers, the oldest of the peer with the most are dropped, and none of the node itself", async () => {
  const { records } = open();
  const honest = "12D3honest";
  await records.put(providerKey("own", self), time);
  await records.put(providerKey("first", honest), time);
  await fill(records, 65_534);
  await records.put(providerKey("own too", self), time);
  await records.put(providerKey("last", honest), time);
  assert.ok(await has(records, providerKey(0)));
  await records.put(providerKey("one more", honest), time);
  assert.ok(!(await has(records, providerKey(0))));
  const stored = [
    providerKey("own", self),
    providerKey("own too", self),
    providerKey("first", honest),
    providerKey("one more", honest),
    providerKey(65_533),
  ];
  for (const key of stored) assert.ok(await has(records, key), key);
});

test("a record that is sent concurrently, repeatedly or after its expiry counts once", async () => {
  const { records, clock } = open(undefined, 256);
  for (let round = 0; round < 10; round += 1) {
    clock.now += 25 * hour;
    for (let number = 0; number < 200; number += 1) {
      await Promise.all([1, 2, 3].map(() => records.put(providerKey(number), time)));
    }
  }
  assert.ok(await has(records, providerKey(0)));
  for (let number = 0; number < 200; number += 1) await records.delete(providerKey(number));
  await fill(records, 256);
  assert.ok(await has(records, providerKey(0)));
});

test("the limit of records also applies after a restart", async () => {
  const { records, metadata } = open(undefined, 256);
  await fill(records, 256);
  await records.close();
  const again = open(metadata, 256).records;
  await again.put(providerKey("early", "12D3honest"), time);
  await again.sweep();
  await again.put(providerKey("late", "12D3honest"), time);
  const stored = (await Array.fromAsync(again.range("/provider/"))).map(([key]) => key);
  assert.ok(stored.length <= 256 && stored.length > 200, `${stored.length} are kept`);
  for (const time of ["early", "late"]) assert.ok(stored.includes(providerKey(time, "12D3honest")), time);
});

test("a record that arrives during a sweep stays", async () => {
  const { records, clock } = open();
  await fill(records, 16);
  clock.now += 25 * hour;
  const sweeping = records.sweep();
  await records.put(providerKey(15), time);
  await sweeping;
  const left = await Array.fromAsync(records.range("/provider/"));
  assert.deepEqual(
    left.map(([key]) => key),
    [providerKey(15)],
  );
});

test("providers that the peer store has dropped are omitted", async () => {
  const { records } = open();
  const table = new RecordDatastore(records, { has: async (id) => id.equals(self) });
  for (const id of [self, other]) await table.put(new Key(`${block}/${id}`), time);
  const found = await Array.fromAsync(table.query({ prefix: block }));
  assert.deepEqual(
    found.map(({ key }) => key.toString()),
    [`${block}/${self}`],
  );
  await assert.rejects(async () => table.get(new Key("/record/none")), { name: "NotFoundError" });
  assert.equal(await table.has(new Key(`${block}/${other}`)), true);
});
