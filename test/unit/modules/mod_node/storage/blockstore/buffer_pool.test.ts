import assert from "node:assert/strict";
import { test } from "node:test";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";

test("a released buffer is reused for a block of nearly the same length", () => {
  const buffers = new BufferPool();
  const first = buffers.take(262_158);
  assert.equal(first.length, 262_158);
  buffers.release(first.subarray(14, 5000));
  const second = buffers.take(262_150);
  assert.equal(second.length, 262_150);
  assert.ok(second.buffer === first.buffer);
});

test("two readers never share memory, however often a buffer is released", () => {
  const buffers = new BufferPool();
  const first = buffers.take(100_000);
  buffers.release(first);
  buffers.release(first);
  const taken = [buffers.take(100_000), buffers.take(100_000), buffers.take(100_000)];
  assert.equal(new Set(taken.map(({ buffer }) => buffer)).size, 3);
});

test("a shared buffer returns to the pool when all its users have released it", () => {
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

test("a retained buffer does not return to the pool, and foreign buffers are ignored", () => {
  const buffers = new BufferPool();
  const retainedBuffer = buffers.take(100_000);
  buffers.retain(retainedBuffer.subarray(5, 10));
  buffers.release(retainedBuffer);
  const strange = new Uint8Array(131_072);
  buffers.release(strange);
  new BufferPool().release(retainedBuffer);
  const next = [buffers.take(100_000), buffers.take(131_072)];
  for (const { buffer } of next) assert.ok(buffer !== retainedBuffer.buffer && buffer !== strange.buffer);
});

test("short and very long blocks have their own memory, and the free buffers are bounded", () => {
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

test("free buffers of one length make room for another length that is used now, and are freed immediately", () => {
  const buffers = new BufferPool();
  const use = (length: number) => {
    const many = Array.from({ length: 16 }, () => buffers.take(length));
    for (const bytes of many) buffers.release(bytes);
    return many.map(({ buffer }) => buffer);
  };
  const retainedBuffer = (some: readonly ArrayBuffer[]) => some.filter(({ byteLength }) => byteLength > 0).length;
  const large = use(320_000);
  assert.equal(retainedBuffer(large), 12);
  const small = new Set(use(262_144));
  assert.equal(retainedBuffer(large), 0);
  assert.ok(use(262_144).every((buffer) => small.has(buffer)));
});
