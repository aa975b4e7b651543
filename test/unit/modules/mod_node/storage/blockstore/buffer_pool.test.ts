import assert from "node:assert/strict";
import { test } from "node:test";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";

test("a buffer that came back is used again for a block of nearly the same length", () => {
  const buffers = new BufferPool();
  const first = buffers.take(262_158);
  assert.equal(first.length, 262_158);
  buffers.release(first.subarray(14, 5000));
  const second = buffers.take(262_150);
  assert.equal(second.length, 262_150);
  assert.ok(second.buffer === first.buffer);
});

test("no two who read have the same memory, however often a buffer is given back", () => {
  const buffers = new BufferPool();
  const first = buffers.take(100_000);
  buffers.release(first);
  buffers.release(first);
  const taken = [buffers.take(100_000), buffers.take(100_000), buffers.take(100_000)];
  assert.equal(new Set(taken.map(({ buffer }) => buffer)).size, 3);
});

test("memory that several share comes back once all of them have released it", () => {
  const buffers = new BufferPool();
  const shared = buffers.take(100_000, 3);
  const isBack = () => {
    const taken = buffers.take(100_000);
    buffers.retain(taken);
    return taken.buffer === shared.buffer;
  };
  buffers.release(shared.subarray(0, 10));
  buffers.release(shared.subarray(10, 20));
  assert.equal(isBack(), false);
  buffers.release(shared.subarray(20, 30));
  assert.equal(isBack(), true);
});

test("what is kept is not taken back, and what is not theirs is let alone", () => {
  const buffers = new BufferPool();
  const kept = buffers.take(100_000);
  buffers.retain(kept.subarray(5, 10));
  buffers.release(kept);
  const strange = new Uint8Array(131_072);
  buffers.release(strange);
  new BufferPool().release(kept);
  const next = [buffers.take(100_000), buffers.take(131_072)];
  for (const { buffer } of next) assert.ok(buffer !== kept.buffer && buffer !== strange.buffer);
});

test("short and very long blocks have memory of their own, and what is kept for later is bounded", () => {
  const buffers = new BufferPool();
  for (const length of [0, 1, 10_000, 3 * 2 ** 20]) {
    const first = buffers.take(length);
    assert.equal(first.length, length);
    first.fill(1);
    buffers.release(first);
    const second = buffers.take(length);
    second.fill(2);
    assert.ok(first.every((byte) => byte === 1));
  }
  const many = Array.from({ length: 40 }, () => buffers.take(262_144));
  const before = new Set(many.map(({ buffer }) => buffer));
  for (const bytes of many) buffers.release(bytes);
  const again = Array.from({ length: 40 }, () => buffers.take(262_144));
  assert.equal(again.filter(({ buffer }) => before.has(buffer)).length, 16);
});

test("what is kept of one length makes room for another that is used now, and is freed at once", () => {
  const buffers = new BufferPool();
  const use = (length: number) => {
    const many = Array.from({ length: 16 }, () => buffers.take(length));
    for (const bytes of many) buffers.release(bytes);
    return many.map(({ buffer }) => buffer);
  };
  const kept = (some: readonly ArrayBuffer[]) => some.filter(({ byteLength }) => byteLength > 0).length;
  const large = use(320_000);
  assert.equal(kept(large), 12);
  const small = new Set(use(262_144));
  assert.equal(kept(large), 0);
  assert.ok(use(262_144).every((buffer) => small.has(buffer)));
});
