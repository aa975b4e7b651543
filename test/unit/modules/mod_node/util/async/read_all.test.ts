import assert from "node:assert/strict";
import { test } from "node:test";
import { readAll, readUpTo } from "#node/util/async/read_all.ts";

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

test("in an array of one's own the bytes are copied, and the pieces are gone where they were given away", async () => {
  for (const transfer of [false, true]) {
    const { source, given } = pieces(3);
    const array = new Uint8Array(20);
    const allocate = (length: number) => array.subarray(2, 2 + length);
    const bytes = await readAll(source(), 12, tooLong, { allocate, transfer });
    assert.deepEqual([...bytes], [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    assert.equal(bytes.buffer, array.buffer);
    assert.deepEqual(
      given.map(({ length }) => length),
      transfer ? [0, 0, 0] : [4, 4, 4],
    );
  }
  // What shares its memory with other bytes stays.
  const shared = new Uint8Array(8).fill(7);
  const into = { allocate: (length: number) => new Uint8Array(length), transfer: true };
  await readAll(pieces(0).source(), 8, tooLong, into);
  async function* part() {
    yield shared.subarray(0, 4);
  }
  await readAll(part(), 8, tooLong, into);
  assert.equal(shared.length, 8);
});
