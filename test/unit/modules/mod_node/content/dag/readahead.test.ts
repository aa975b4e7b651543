import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_AHEAD_BYTES, Readahead } from "#node/content/dag/readahead.ts";

const mebibyte = 2 ** 20;

/** Requests blocks of `length` bytes, whose links claim `said` bytes, until there is no room. */
async function full(length: number, said: number) {
  const ahead = new Readahead<number, { readonly length: number }>((block) => block.length);
  let count = 0;
  for (; count < 10_000 && ahead.request(count, said, async () => ({ length })); count += 1) await Promise.resolve();
  return { ahead, count };
}

test("all readers together stay below the limit, whatever sizes links claim", async () => {
  const first = await full(mebibyte, 1);
  assert.ok(first.count * mebibyte <= MAX_AHEAD_BYTES + 16 * mebibyte, `${first.count}`);
  const other = await full(mebibyte, mebibyte);
  assert.equal(other.count, 0);
  assert.deepEqual(await first.ahead.take(0), { length: mebibyte });
  assert.equal(first.ahead.end().length, first.count - 1);
  // Exactly the same amount is available again.
  const again = await full(mebibyte, mebibyte);
  assert.equal(again.count, MAX_AHEAD_BYTES / mebibyte);
  again.ahead.end();
});

test("a block that cannot be read releases its room", async () => {
  const ahead = new Readahead<number, Uint8Array>(({ length }) => length);
  ahead.request(0, mebibyte, () => Promise.reject(new Error("away")));
  await assert.rejects(ahead.take(0) as Promise<Uint8Array>, /away/);
  const { count, ahead: other } = await full(mebibyte, mebibyte);
  assert.equal(count, MAX_AHEAD_BYTES / mebibyte);
  other.end();
});

test("values that were already read count against the same limit, and are available at once", async () => {
  const ahead = new Readahead<number, Uint8Array>(({ length }) => length);
  const bytes = new Uint8Array(mebibyte);
  let count = 0;
  while (count < 10_000 && ahead.add(count, bytes)) count += 1;
  assert.equal(count, MAX_AHEAD_BYTES / mebibyte);
  assert.equal(ahead.atHand(0), bytes);
  assert.equal(ahead.take(0), bytes);
  assert.equal(ahead.atHand(0), undefined);
  assert.ok(ahead.add(0, bytes), "its room was given back");
  assert.deepEqual(new Set(ahead.end()), new Set([bytes]));
  const { count: again, ahead: other } = await full(mebibyte, mebibyte);
  assert.equal(again, MAX_AHEAD_BYTES / mebibyte);
  other.end();
});

/**
 * Returns the `reach` of a reader that requests as much ahead as is worth it. Blocks take `far`
 * milliseconds, and the line has `rate` bytes per millisecond.
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
  for (let requested = 0, taken = 0; taken < blocks; taken += 1) {
    for (; requested - taken < 8 * ahead.reach; requested += 1) {
      const { promise, resolve } = Promise.withResolvers<{ readonly length: number }>();
      assert.ok(ahead.request(requested, block, () => promise));
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

test("a reader requests more ahead from fast distant peers only, and not from nearby peers or over a slow line", async () => {
  const perMs = mebibyte / 1000;
  assert.ok((await reachOf(60, 100 * perMs)) > 5, "6 MiB are on the way");
  assert.ok((await reachOf(60, 100 * perMs, 8)) > 5, "the first few tell it");
  assert.equal(await reachOf(60, 5 * perMs), 1);
  assert.equal(await reachOf(1, 1000 * perMs), 1);
});
