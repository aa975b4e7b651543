/** The memory into which the responses of workers are read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ReadMemory } from "#core/relay/read_memory.ts";

const PIECE_BYTES = 64 * 1024;

/** Reads a piece, as the system does. */
function read(memory: ReadMemory, letter: string, bytes = PIECE_BYTES): Buffer {
  memory.room().fill(letter, 0, bytes);
  const piece = memory.filled(bytes);
  memory.handled(bytes);
  return piece;
}

test("memory is read into again once all of its pieces are released", () => {
  const memory = new ReadMemory();
  const retained = ["a", "b", "c"].map((letter) => memory.keep(read(memory, letter)));
  const [first] = retained as [Buffer];
  for (const piece of retained) memory.release(piece);
  read(memory, "d");
  assert.equal(first.toString("latin1"), "d".repeat(PIECE_BYTES));
});

test("a kept piece does not change, however much is read and whatever else is released", () => {
  const memory = new ReadMemory();
  const retained = memory.keep(read(memory, "a"));
  for (let count = 0; count < 100; count += 1) memory.release(memory.keep(read(memory, "b")));
  assert.equal(retained.toString("latin1"), "a".repeat(PIECE_BYTES));
});

test("bytes that are not handled are in one piece with those that are read next", () => {
  const memory = new ReadMemory();
  const retained: Buffer[] = [];
  for (let count = 0; count < 20; count += 1) {
    memory.room().fill("x", 0, PIECE_BYTES);
    retained.push(memory.keep(memory.filled(PIECE_BYTES).subarray(0, PIECE_BYTES - 10)));
    memory.handled(PIECE_BYTES - 10);
    memory.room().write("y");
    assert.equal(memory.filled(1).toString(), `${"x".repeat(10)}y`);
    memory.handled(11);
  }
  assert.ok(retained.every((piece) => piece.every((byte) => byte === 120)));
});

test("a small piece is copied, so that it does not keep the memory of others", () => {
  const memory = new ReadMemory();
  const read1 = read(memory, "a", 10);
  const retained = memory.keep(read1);
  assert.notEqual(retained.buffer, read1.buffer);
  memory.release(retained);
  read(memory, "b", 10);
  assert.equal(retained.toString(), "a".repeat(10));
});
