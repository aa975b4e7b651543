import assert from "node:assert/strict";
import { test } from "node:test";
import { Leaves } from "#node/content/unixfs/leaves.ts";
import { sha256 } from "#node/formats/cid/hashes.ts";
import { SizeChunker } from "#node/formats/unixfs/chunker/chunker.ts";

const chunk = 256 * 1024;

/**
 * Splits a file of `size` bytes that arrives in pieces of `step` bytes. Returns the lengths of the
 * leaves and of their memory.
 */
async function leavesOf(size: number, step: number) {
  const content = Buffer.alloc(size, "0123456789");
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < size; at += step) yield content.subarray(at, at + step);
  }
  const stored = new Map<string, Uint8Array>();
  const leaves = new Leaves(
    pieces(),
    {
      version: 1,
      hash: sha256,
      inlineLimit: undefined,
      chunker: () => new SizeChunker(chunk),
      rawLeaves: true,
      leafType: "File",
    },
    ({ cid, bytes }) => {
      stored.set(cid.toString(), bytes);
      return undefined;
    },
  );
  const got: Uint8Array[] = [];
  for (let leaf = await leaves.next(); leaf !== undefined; leaf = await leaves.next()) {
    got.push(stored.get(leaf.cid.toString()) as Uint8Array);
  }
  await leaves.close();
  assert.ok(Buffer.concat(got).equals(content));
  return got.map(({ length, buffer }) => ({ length, memory: buffer.byteLength }));
}

test("a small file needs little memory, however many pieces it arrives in", async () => {
  for (const step of [4096, 1000, 100, 7]) {
    const [leaf, ...others] = await leavesOf(4096, step);
    assert.equal(leaf?.length, 4096);
    assert.deepEqual(others, []);
    assert.ok((leaf?.memory ?? 0) < 3 * 4096, `pieces of ${step}: ${leaf?.memory} bytes`);
  }
});

test("buffers for leaves of a large file fit the longest chunk", async () => {
  const found = await leavesOf(3 * chunk + 10, 60_000);
  assert.deepEqual(
    found.map(({ length }) => length),
    [chunk, chunk, chunk, 10],
  );
  for (const { memory } of found) assert.ok(memory <= chunk + 32, `${memory} bytes`);
});

const settings = { version: 1, hash: sha256, inlineLimit: undefined, rawLeaves: true, leafType: "File" } as const;

test("a chunker without progress causes an error instead of an endless loop", async () => {
  for (const cut of [(_: Uint8Array, from: number) => from, () => -1]) {
    async function* body() {
      yield new Uint8Array(100);
    }
    const leaves = new Leaves(body(), { ...settings, chunker: () => ({ maxLength: 10, cut }) }, () => undefined);
    await assert.rejects(leaves.next(), { message: "the chunker makes no progress" });
  }
});

test("a signal aborts the chunking of one long piece", async () => {
  const abort = new AbortController();
  async function* body() {
    yield new Uint8Array(1_000_000);
  }
  let stored = 0;
  const leaves = new Leaves(body(), { ...settings, chunker: () => new SizeChunker(1), signal: abort.signal }, () => {
    stored += 1;
    if (stored === 1000) abort.abort(new Error("the client has left"));
    return undefined;
  });
  const all = async () => {
    while ((await leaves.next()) !== undefined);
  };
  await assert.rejects(all(), { message: "the client has left" });
  assert.ok(stored < 2000, `${stored} leaves`);
});
