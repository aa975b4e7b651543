/** Short messages as frames (RFC 6455, 5.2). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { frameOf } from "#core/http/websocket/outgoing_frame.ts";

const TEXT = 0x81;
const BINARY = 0x82;

/** Returns what a client reads from a frame without a mask. */
function read(frame: Buffer | undefined): { kind: number; head: number; payload: Buffer } {
  assert.ok(frame !== undefined);
  const kind = frame[0] as number;
  const short = frame[1] as number;
  assert.ok(short <= 126, "no mask, and no length of eight bytes");
  const head = short < 126 ? 2 : 4;
  const length = short < 126 ? short : frame.readUInt16BE(2);
  assert.ok(head === 2 || length >= 126, "the shortest form of the length");
  assert.equal(frame.length, head + length);
  return { kind, head, payload: frame.subarray(head) };
}

const bytesOf = (length: number) => Buffer.from(Array.from({ length }, (_, at) => at % 251));

test("bytes and text of each length up to 2,048 are one frame, its head of the shortest form", () => {
  for (const [length, head] of [
    [0, 2],
    [1, 2],
    [125, 2],
    [126, 4],
    [127, 4],
    [255, 4],
    [256, 4],
    [2047, 4],
    [2048, 4],
  ] as const) {
    const bytes = bytesOf(length);
    assert.deepEqual(read(frameOf(bytes)), { kind: BINARY, head, payload: bytes });
    const text = "x".repeat(length);
    assert.deepEqual(read(frameOf(text)), { kind: TEXT, head, payload: Buffer.from(text) });
  }
});

test("a longer message is left to the library", () => {
  for (const length of [2049, 65_535, 65_536, 1_000_000]) {
    assert.equal(frameOf(bytesOf(length)), undefined);
    assert.equal(frameOf("x".repeat(length)), undefined);
  }
});

test("the length of a text is that of its bytes", () => {
  for (const [text, head] of [
    ["ä".repeat(62), 2],
    ["ä".repeat(63), 4],
    ["€".repeat(682), 4],
    ["😀".repeat(512), 4],
  ] as const) {
    assert.deepEqual(read(frameOf(text)), { kind: TEXT, head, payload: Buffer.from(text) });
  }
  for (const text of ["ä".repeat(1025), "€".repeat(683), "😀".repeat(513)]) {
    assert.ok(text.length <= 2048);
    assert.equal(frameOf(text), undefined);
  }
});

test("half a character is sent as the replacement character", () => {
  for (const [text, sent] of [
    ["\ud83d", "\ufffd"],
    ["\ude00a", "\ufffda"],
    ["a\ud83d\ud83d\ude00", "a\ufffd😀"],
    ["\ud83d".repeat(42), "\ufffd".repeat(42)],
    ["\ud83d".repeat(682), "\ufffd".repeat(682)],
  ] as const) {
    const { kind, payload } = read(frameOf(text));
    assert.deepEqual([kind, payload.toString()], [TEXT, sent]);
  }
  assert.equal(frameOf("\ud83d".repeat(683)), undefined);
});

test("a view of a buffer is sent, without the bytes around it", () => {
  const view = Uint8Array.from(bytesOf(100)).subarray(10, 20);
  assert.deepEqual(read(frameOf(view)).payload, Buffer.from(view));
});
