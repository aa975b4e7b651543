import assert from "node:assert/strict";
import { test } from "node:test";
import { gatherAll, readAll, readUpTo } from "#node/util/async/read_all.ts";

const tooLong = () => new RangeError("too long");

/**
 * Creates a source of pieces of 4 bytes, each with its own memory. `left` is set if the consumer
 * left early.
 */
function pieces(count: number) {
  const given: Uint8Array[] = [];
  const state = { given, left: false };
  async function* source(): AsyncGenerator<Uint8Array> {
    try {
      for (let at = 0; at < count; at += 1) {
        const piece = new Uint8Array(4).fill(at);
        given.push(piece);
        yield piece;
      }
    } finally {
      state.left = given.length < count;
    }
  }
  return Object.assign(state, { source });
}

test("a source longer than the limit is cut by readUpTo and refused by readAll", async () => {
  assert.deepEqual([...(await readUpTo(pieces(3).source(), 6))], [0, 0, 0, 0, 1, 1]);
  assert.deepEqual([...(await readAll(pieces(2).source(), 8, tooLong))], [0, 0, 0, 0, 1, 1, 1, 1]);
  const endless = pieces(1000);
  await assert.rejects(readAll(endless.source(), 7, tooLong), RangeError);
  assert.deepEqual([endless.given.length, endless.left], [2, true]);
});

test("gatherAll copies each piece at once, and returns the arrays that it has outgrown to the pool", async () => {
  const leased = new Set<Uint8Array>();
  const arrays = {
    take(length: number) {
      const array = new Uint8Array(length + 3);
      leased.add(array);
      return array;
    },
    release: (array: Uint8Array) => void leased.delete(array),
  };
  async function* again() {
    const piece = new Uint8Array(4);
    for (const value of [1, 2, 3]) yield piece.fill(value);
  }
  const bytes = await gatherAll(again(), arrays, 12, tooLong);
  assert.deepEqual([...bytes], [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
  assert.deepEqual(
    [...leased].map(({ buffer }) => buffer),
    [bytes.buffer],
  );
  leased.clear();
  await assert.rejects(gatherAll(again(), arrays, 11, tooLong), RangeError);
  assert.equal(leased.size, 0);
});
