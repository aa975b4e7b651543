import assert from "node:assert/strict";
import { test } from "node:test";
import { Record } from "@libp2p/kad-dht";
import { Key } from "interface-datastore";
import { generateKey } from "../../../../../modules/mod_http_api/node/keys/key.ts";
import { memoryMetadata } from "../../../../../modules/mod_http_api/node/metadata/memory.ts";
import { recordKey } from "../../../../../modules/mod_http_api/node/name_records/keys.ts";
import { signRecord } from "../../../../../modules/mod_http_api/node/name_records/sign.ts";
import { formatMoment, momentAfter } from "../../../../../modules/mod_http_api/node/name_records/time.ts";
import { parsePeerId } from "../../../../../modules/mod_http_api/node/peer_id.ts";
import { Records, TableRecords, valueName } from "../../../../../modules/mod_http_api/node/routing/records.ts";

const self = parsePeerId("12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5");
const other = parsePeerId("12D3KooWEfnzCZ79qLke7bqPoJvXGMBTfwMb5gZfcdYGxmj1TFtu");
const hour = 3600 * 1000;
const block = "/provider/ciqfrslwmexpphpuzzrgjbtvvjldkxewnjlaphhzdfhqf7gyb66nnoi";

function open(metadata = memoryMetadata()) {
  const clock = { now: 1_700_000_000_000 };
  const records = new Records({ metadata, self, now: () => clock.now });
  return { metadata, clock, records };
}

const time = Buffer.from([1]);
const keysOf = async (records: Records) => (await Array.fromAsync(records.range(`${block}/`))).map(([key]) => key);

const signed = async (sequence: bigint, key = generateKey({ type: "ed25519" })) => {
  const made = await key;
  const validity = formatMoment(momentAfter(hour));
  const value = await signRecord(made, { value: Buffer.from("/ipfs/x"), validity, sequence, ttl: 0n });
  const name = recordKey(made.id);
  return { made, name, value, bytes: new Record(name, value, new Date()).serialize().subarray() };
};

test("a provider is told of for a day", async () => {
  const { records, clock } = open();
  await records.put(`${block}/${other}`, time);
  clock.now += 24 * hour;
  assert.deepEqual(await keysOf(records), [`${block}/${other}`]);
  clock.now += 1;
  assert.deepEqual(await keysOf(records), []);
  await records.put(`${block}/${other}`, time);
  assert.deepEqual(await keysOf(records), [`${block}/${other}`]);
});

test("a record is kept for a day and a half, and taken away afterwards", async () => {
  const { records, clock, metadata } = open();
  const { name, bytes, value } = await signed(1n);
  await records.put(valueName(name), bytes);
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
  await records.put(valueName(first.name), second.bytes);
  await assert.rejects(records.put(valueName(first.name), first.bytes), {
    message: "can't replace a newer value with an older value",
  });
  await records.put(valueName(first.name), second.bytes);
  assert.deepEqual(await records.value(first.name), second.value);
});

test("what was put is there when the store is opened anew", async () => {
  const { records, metadata } = open();
  await records.put(`${block}/${other}`, time);
  await records.close();
  assert.deepEqual(await keysOf(open(metadata).records), [`${block}/${other}`]);
});

test("of others so much is kept and no more, of the node itself all", async () => {
  const { records, clock } = open();
  const most = 65_536;
  const name = (number: number) => `/provider/block${number}`;
  for (let number = 0; number < most; number += 1) await records.put(`${name(number)}/${other}`, time);
  await records.put(`${name(most)}/${other}`, time);
  assert.equal(await records.get(`${name(most)}/${other}`), undefined);
  await records.put(`${name(most)}/${self}`, time);
  assert.deepEqual(Buffer.from((await records.get(`${name(most)}/${self}`)) ?? []), time);
  // One that is there may be told again, and one that goes makes room.
  await records.put(`${name(0)}/${other}`, time);
  await records.delete(`${name(1)}/${other}`);
  await records.put(`${name(most)}/${other}`, time);
  assert.notEqual(await records.get(`${name(most)}/${other}`), undefined);
  clock.now += 25 * hour;
  await records.sweep();
  await records.put(`${name(1)}/${other}`, time);
  assert.notEqual(await records.get(`${name(1)}/${other}`), undefined);
  await records.close();
});

test("a table is told of those providers alone of whom anything is known", async () => {
  const { records } = open();
  const table = new TableRecords(records, { has: async (id) => id.equals(self) });
  for (const id of [self, other]) await table.put(new Key(`${block}/${id}`), time);
  const told = await Array.fromAsync(table.query({ prefix: block }));
  assert.deepEqual(
    told.map(({ key }) => key.toString()),
    [`${block}/${self}`],
  );
  await assert.rejects(async () => table.get(new Key("/record/none")), { name: "NotFoundError" });
  assert.equal(await table.has(new Key(`${block}/${other}`)), true);
});
