import assert from "node:assert/strict";
import { test } from "node:test";
import { SequentialWrite } from "#node/mount/names/sequential_write.ts";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";

const mebibyte = 2 ** 20;

test("writers that wait for room continue in the order of their pieces", { timeout: 300_000 }, async () => {
  const begin = Promise.withResolvers<void>();
  const taken: number[] = [];
  const writing = new SequentialWrite(5, new BufferPool(), async (content) => {
    await begin.promise;
    for await (const piece of content) taken.push(piece[0] as number);
  });
  const putting = Array.from({ length: 12 }, (_, at) => writing.put(new Uint8Array(mebibyte).fill(at)));
  await Promise.all(putting.slice(0, 4));
  assert.equal(writing.end, 5 + 12 * mebibyte);
  begin.resolve();
  await Promise.all(putting);
  await writing.finish();
  assert.deepEqual(
    taken,
    Array.from({ length: 12 }, (_, at) => at),
  );
});

test("writers that wait for room get the failure of the write", { timeout: 300_000 }, async () => {
  const begin = Promise.withResolvers<void>();
  const writing = new SequentialWrite(0, new BufferPool(), async () => {
    await begin.promise;
    throw new Error("no room");
  });
  const putting = Array.from({ length: 8 }, () => writing.put(new Uint8Array(mebibyte)));
  begin.resolve();
  const outcomes = await Promise.allSettled(putting);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    [...Array(4).fill("fulfilled"), ...Array(4).fill("rejected")],
  );
  await assert.rejects(writing.put(new Uint8Array(1)), /no room/);
  await assert.rejects(writing.finish(), /no room/);
});
