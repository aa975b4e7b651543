import assert from "node:assert/strict";
import { test } from "node:test";
import { gatherAll, readAll, readUpTo } from "#node/util/async/read_all.ts";

const tooLong = () => new RangeError("too long");

/** Pieces of 4 bytes with memory of their own; `left` says that the rest was not wanted. */
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

test("of a longer source the first bytes are taken, or none at all", async () => {
  assert.deepEqual([...(await readUpTo(pieces(3).source(), 6))], [0, 0, 0, 0, 1, 1]);
  assert.deepEqual([...(await readAll(pieces(2).source(), 8, tooLong))], [0, 0, 0, 0, 1, 1, 1, 1]);
  const endless = pieces(1000);
  await assert.rejects(readAll(endless.source(), 7, tooLong), RangeError);
  assert.deepEqual([endless.given.length, endless.left], [2, true]);
});

test("what is gathered is copied as it comes, into arrays that grow and are given back", async () => {
  const lent = new Set<Uint8Array>();
  const arrays = {
    take(length: number) {
      const array = new Uint8Array(length + 3);
      lent.add(array);
      return array;
    },
    release: (array: Uint8Array) => void lent.delete(array),
  };
  async function* again() {
    const piece = new Uint8Array(4);
    for (const value of [1, 2, 3]) yield piece.fill(value);
  }
  const bytes = await gatherAll(again(), arrays, 12, tooLong);
  assert.deepEqual([...bytes], [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
  assert.deepEqual(
    [...lent].map(({ buffer }) => buffer),
    [bytes.buffer],
  );
  lent.clear();
  await assert.rejects(gatherAll(again(), arrays, 11, tooLong), RangeError);
  assert.equal(lent.size, 0);
});
