/** Frames over a stream of bytes, as a sandbox sends them and as a hostile one may. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FrameDecoder, FrameFault, frameOf } from "#core/relay/frames.ts";

const values: readonly unknown[] = [
  undefined,
  null,
  "",
  "text",
  7,
  10n,
  { call: "work", id: undefined, values: [1, "two", [3]] },
  new Map([["key", new Set([1])]]),
  new Date(0),
  new Uint8Array([1, 2, 3]),
];

function all(reader: FrameDecoder): unknown[] {
  const found: unknown[] = [];
  for (let next = reader.next(); next !== undefined; next = reader.next()) found.push(next.value);
  return found;
}

/** Returns a frame with this body, whatever that is. */
function frame(body: readonly number[]): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(body.length);
  return Buffer.concat([head, Buffer.from(body)]);
}

describe("frames", () => {
  for (const size of [1, 2, 3, 5, 64, 100_000]) {
    test(`carry every value when they arrive in pieces of ${size} bytes`, () => {
      const bytes = Buffer.concat(values.map((value) => frameOf(value)));
      const reader = new FrameDecoder();
      const found: unknown[] = [];
      for (let at = 0; at < bytes.length; at += size) {
        reader.push(bytes.subarray(at, at + size));
        found.push(...all(reader));
      }
      assert.deepEqual(found, values);
    });
  }

  test("are refused by their length alone, before a body of that length is allocated", () => {
    const reader = new FrameDecoder(1000);
    reader.push(Buffer.from([0xff, 0xff, 0xff, 0xff]));
    assert.throws(() => reader.next(), new FrameFault("a message of 4294967295 bytes, and at most 1000 are allowed"));
    const exact = frameOf("x".repeat(100));
    const enough = new FrameDecoder(exact.length - 4);
    enough.push(exact);
    assert.equal(enough.next()?.value, "x".repeat(100));
    const small = new FrameDecoder(exact.length - 5);
    small.push(exact);
    assert.throws(() => small.next(), FrameFault);
  });

  test("are not made of values that are too large or cannot be copied", () => {
    assert.throws(() => frameOf("x".repeat(1000), 500), /A message of \d+ bytes cannot be sent: at most 500/);
    assert.throws(() => frameOf(() => undefined), /could not be cloned/);
  });

  test("with a damaged body fail as faults and never otherwise", () => {
    const good = [...frameOf({ call: "work", id: 1, values: [{ a: [1, 2, 3] }, new Uint8Array(9), "text"] })].slice(4);
    const bodies = [[], [0], [0xff], [0xff, 15], good.slice(0, -1), [...good, 1, 2, 3]];
    for (let at = 0; at < good.length; at += 1) {
      for (const byte of [0, 1, 0x7f, 0xff, 0x41, 0x5c]) bodies.push(good.with(at, byte));
    }
    let faults = 0;
    for (const body of bodies) {
      const reader = new FrameDecoder(1000);
      reader.push(frame(body));
      try {
        reader.next();
      } catch (error) {
        assert.ok(error instanceof FrameFault, String(error));
        faults += 1;
      }
    }
    assert.ok(faults > 100, `only ${faults} of ${bodies.length} damaged bodies are refused`);
  });

  test("give objects without foreign prototypes, whatever names their fields have", () => {
    const reader = new FrameDecoder();
    reader.push(frameOf(JSON.parse('{"__proto__":{"polluted":true},"constructor":1}')));
    const value = reader.next()?.value as Record<string, unknown>;
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
    assert.equal(value.polluted, undefined);
    assert.equal(({} as Record<string, unknown>).polluted, undefined);
  });
});
