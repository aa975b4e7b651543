import assert from "node:assert/strict";
import { test } from "node:test";
import { FieldReader } from "#node/formats/protobuf/fields.ts";
import { boundedMessage, boundsOfStream } from "#node/network/kad/message_bounds.ts";
import { field, framed } from "#test/support/protobuf.ts";

const key = 2;
const record = 3;
const closer = 8;
const providers = 9;
const peer = (number: number, at: number, addresses: number) =>
  field(
    number,
    field(1, Buffer.from(`peer ${at}`)),
    ...Array.from({ length: addresses }, () => field(2, Buffer.of(4))),
  );
const peers = (number: number, count: number, addresses: number) =>
  Array.from({ length: count }, (_, at) => peer(number, at, addresses));

function countsOf(bytes: Uint8Array): Readonly<Record<number, number>> {
  const counts: Record<number, number> = {};
  const reader = new FieldReader(bytes);
  while (reader.next()) counts[reader.field] = (counts[reader.field] ?? 0) + 1;
  return counts;
}

test("a message within the limits is read unchanged", () => {
  const rest = [Buffer.of(8, 4), field(key, Buffer.from("key")), field(record, field(1, Buffer.from("value")))];
  const message = Buffer.concat([...rest, ...peers(closer, 20, 3), ...peers(providers, 256, 2), Buffer.of(80, 1)]);
  assert.deepEqual(Buffer.from(boundedMessage(message)), message);
});

test("only the first of thousands of peers, and of one peer's addresses, are read", () => {
  const message = Buffer.concat([
    ...peers(closer, 5000, 1),
    field(key, Buffer.from("key")),
    ...peers(providers, 5000, 1),
    peer(closer, 7, 1000),
  ]);
  const bounded = boundedMessage(message);
  assert.deepEqual(countsOf(bounded), { [closer]: 20, [key]: 1, [providers]: 256 });
  const first = new FieldReader(boundedMessage(Buffer.concat([peer(closer, 7, 1000)])));
  first.next();
  assert.deepEqual(countsOf(first.bytes), { 1: 1, 2: 128 });
});

test("messages are returned one by one, however they are split in transit", () => {
  const bytes = Buffer.concat([framed(field(key, Buffer.from("one"))), framed(), framed(...peers(closer, 30, 0))]);
  const bounds = boundsOfStream();
  const given = Array.from(bytes, (byte) => bounds(Uint8Array.of(byte))).flat();
  const expected = [framed(field(key, Buffer.from("one"))), framed(), framed(...peers(closer, 20, 0))];
  assert.deepEqual(
    given.map((each) => Buffer.from(each)),
    expected,
  );
});

test("nothing is read of a message that exceeds the limits", () => {
  assert.throws(() => boundedMessage(Buffer.alloc(200_000, Buffer.of(66, 0))), /more than 65536 fields/);
  const long = field(providers, field(2, Buffer.alloc(200_000)));
  assert.throws(() => boundedMessage(long), /addresses of more than 163840 bytes/);
});
