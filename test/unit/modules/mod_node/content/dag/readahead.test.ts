import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_AHEAD_BYTES, Readahead } from "#node/content/dag/readahead.ts";

const mebibyte = 2 ** 20;

/**
 * Asks ahead for blocks that have `length` bytes and are said to have `said`, until there is no
 * room.
 */
async function full(length: number, said: number) {
  const ahead = new Readahead<number, { readonly length: number }>((block) => block.length);
  let count = 0;
  for (; count < 10_000 && ahead.ask(count, said, async () => ({ length })); count += 1) await Promise.resolve();
  return { ahead, count };
}

test("all who read ahead hold so many bytes together, whatever is said of their blocks", async () => {
  const first = await full(mebibyte, 1);
  assert.ok(first.count * mebibyte <= MAX_AHEAD_BYTES + 16 * mebibyte, `${first.count}`);
  const other = await full(mebibyte, mebibyte);
  assert.equal(other.count, 0);
  assert.deepEqual(await first.ahead.take(0), { length: mebibyte });
  assert.equal(first.ahead.end().length, first.count - 1);
  // What was held is given back, exactly.
  const again = await full(mebibyte, mebibyte);
  assert.equal(again.count, MAX_AHEAD_BYTES / mebibyte);
  again.ahead.end();
});

test("a block that cannot be read gives back its room", async () => {
  const ahead = new Readahead<number, Uint8Array>(({ length }) => length);
  ahead.ask(0, mebibyte, () => Promise.reject(new Error("away")));
  await assert.rejects(ahead.take(0) as Promise<Uint8Array>, /away/);
  const { count, ahead: other } = await full(mebibyte, mebibyte);
  assert.equal(count, MAX_AHEAD_BYTES / mebibyte);
  other.end();
});

test("what was read already is held within the same bound, and is there at once", async () => {
  const ahead = new Readahead<number, Uint8Array>(({ length }) => length);
  const bytes = new Uint8Array(mebibyte);
  let count = 0;
  while (count < 10_000 && ahead.hold(count, bytes)) count += 1;
  assert.equal(count, MAX_AHEAD_BYTES / mebibyte);
  assert.equal(ahead.held(0), bytes);
  assert.equal(ahead.take(0), bytes);
  assert.equal(ahead.held(0), undefined);
  assert.ok(ahead.hold(0, bytes), "its room was given back");
  assert.deepEqual(new Set(ahead.end()), new Set([bytes]));
  const { count: again, ahead: other } = await full(mebibyte, mebibyte);
  assert.equal(again, MAX_AHEAD_BYTES / mebibyte);
  other.end();
});

/**
 * A reader that asks for as much ahead as is worth it, of blocks that come after `far` ms over a
 * line of `rate` bytes a ms.
 */
async function reachOf(far: number, rate: number, blocks = 400): Promise<number> {
  const block = mebibyte / 4;
  let now = 0;
  const ahead = new Readahead<number, { readonly length: number }>(
    (bytes) => bytes.length,
    { bytes: 8 * block, blocks: 64 },
    () => now,
  );
  const coming: { at: number; come(value: { readonly length: number }): void }[] = [];
  let isFreeAt = 0;
  for (let asked = 0, taken = 0; taken < blocks; taken += 1) {
    for (; asked - taken < 8 * ahead.reach; asked += 1) {
      const { promise, resolve } = Promise.withResolvers<{ readonly length: number }>();
      assert.ok(ahead.ask(asked, block, () => promise));
      isFreeAt = Math.max(isFreeAt, now + far) + block / rate;
      coming.push({ at: isFreeAt, come: resolve });
    }
    const { at, come } = coming[taken] as (typeof coming)[number];
    now = at;
    come({ length: block });
    await ahead.take(taken);
  }
  const { reach } = ahead;
  ahead.end();
  return reach;
}

test("a reader asks for more ahead of what comes quickly from far away, and not of what is near or comes over a slow line", async () => {
  const perMs = mebibyte / 1000;
  assert.ok((await reachOf(60, 100 * perMs)) > 5, "6 MiB are on the way");
  assert.ok((await reachOf(60, 100 * perMs, 8)) > 5, "the first few tell it");
  assert.equal(await reachOf(60, 5 * perMs), 1);
  assert.equal(await reachOf(1, 1000 * perMs), 1);
});
