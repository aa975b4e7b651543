/** Values that a hostile sandbox may send. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { deserialize, serialize } from "node:v8";
import { untrustedFault } from "#core/relay/untrusted_value.ts";

/** Serializes a value as V8 does, and reads it again. */
const fault = (value: unknown) => {
  return untrustedFault(deserialize(serialize(value)), 4 * 2 ** 20);
};
const rawFault = (...bytes: number[]) => untrustedFault(deserialize(Buffer.from(bytes)), bytes.length);

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let at = 0; at < depth; at += 1) value = [value];
  return value;
}

test("plain data of every kind passes, also if it contains itself", () => {
  const cyclic: Record<string, unknown> = { name: "self" };
  cyclic.self = cyclic;
  const shared = { a: 1 };
  for (const value of [
    undefined,
    "text",
    { a: [1, { b: new Map([[{}, new Set([1])]]) }], constructor: "a name" },
    [new Date(0), new Error("e"), 10n, new Uint8Array(100_000), new ArrayBuffer(8), Buffer.from("b")],
    cyclic,
    [shared, shared],
    nested(100),
    Array.from({ length: 100_000 }, (_, at) => ({ at })),
    Object.assign([1], { 2: 3 }),
  ])
    assert.equal(fault(value), undefined);
});

test("a list of four billion empty items is refused", () => {
  assert.equal(
    rawFault(0xff, 15, 0x61, 0xff, 0xff, 0xff, 0xff, 15, 0x40, 0, 0xff, 0xff, 0xff, 0xff, 15),
    "a list that is longer than its message",
  );
});

test("lists that contain one another so often that nobody can walk through them are refused", () => {
  let value: unknown = [];
  for (let at = 0; at < 40; at += 1) value = [value, value];
  assert.match(fault(value) ?? "", /more than 1000000 objects/);
});

test("a list that occurs so often that its copies exceed the size of a message is refused", () => {
  const texts = ["text".repeat(1000)];
  const bytes = serialize(Array.from({ length: 1000 }, () => texts));
  assert.equal(untrustedFault(deserialize(bytes), 4_000_000), "objects that are repeated to more than 4000000 bytes");
  assert.equal(untrustedFault(deserialize(bytes), 5_000_000), undefined);
  const empty = Object.assign([], { length: 1_000_000 });
  const buffer = new Uint8Array(1_000_000);
  for (const one of [empty, buffer])
    assert.match(fault([1, 2, 3, 4, 5].map(() => one)) ?? "", /objects that are repeated to more than/);
});

test("the cause of an error is checked like any other value", () => {
  const withCause = (cause: unknown) => fault(new Error("e", { cause }));
  assert.equal(withCause({ a: /(a+)+$/ }), "a regular expression");
  assert.equal(withCause(JSON.parse('{"__proto__":1}')), "an object with the field __proto__");
  assert.equal(withCause(new Error("the cause")), undefined);
});

test("values that are nested deeply, that reserve memory, or that take long to match are refused", () => {
  assert.match(fault(nested(200)) ?? "", /depth of more than 128/);
  // Each list of the outer one contains the one before it.
  let last: unknown[] = [];
  const lists = Array.from({ length: 10 }, () => {
    for (let at = 0; at < 100; at += 1) last = [last];
    return last;
  });
  assert.match(fault(lists) ?? "", /depth of more than 128/);
  assert.equal(rawFault(0xff, 15, 0x7e, 0, 0xff, 0xff, 0xff, 0xff, 15), "a resizable buffer");
  assert.equal(fault({ a: /(a+)+$/ }), "a regular expression");
});

test("a field with the name of the prototype is refused at any depth", () => {
  assert.equal(fault([{ a: JSON.parse('{"__proto__":{"polluted":1}}') }]), "an object with the field __proto__");
  assert.equal(fault(new Map([["a", JSON.parse('{"__proto__":1}')]])), "an object with the field __proto__");
});
