import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { CID } from "multiformats/cid";
import { openFile } from "#node/content/unixfs/open.ts";
import { FileReadahead } from "#node/mount/readahead.ts";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { goRandom } from "#test/support/go_random.ts";
import { Trees } from "#test/unit/modules/mod_node/content/unixfs/trees.ts";

const content = goRandom(2_000_000, 7);
const piece = 5000;

/**
 * Reads one file by several readers that take turns, piece by piece. Returns the number of
 * requested blocks.
 */
async function readBy(readers: number): Promise<number> {
  const trees = new Trees();
  const cid = (await trees.add({ f: content })).get("f") as CID;
  const tree = await openFile(cid, trees.read);
  trees.requested.length = 0;
  const reads = new FileReadahead(() => trees.read, new BufferPool());
  const { signal } = new AbortController();
  try {
    for (let offset = 0; offset < content.length; offset += piece) {
      for (let reader = 0; reader < readers; reader += 1) {
        const { pieces, release } = await reads.read({ id: 1, tree }, offset, piece, signal);
        assert.ok(Buffer.concat(pieces).equals(content.subarray(offset, offset + piece)), `${reader} at ${offset}`);
        release?.();
      }
    }
  } finally {
    reads.close();
  }
  return trees.requested.length;
}

describe("sequential reads of a file", () => {
  test("by several readers read each block once per reader", async () => {
    const alone = await readBy(1);
    for (const readers of [2, 3]) {
      const requested = await readBy(readers);
      // Each reader finds the blocks on its way when it begins, and again until it is known to be
      // sequential.
      assert.ok(requested <= readers * alone * 1.1, `${readers} readers: ${requested} blocks, one reader: ${alone}`);
    }
  });

  test("are ended when there are too many streams, the least recently used first", async () => {
    const trees = new Trees();
    const cid = (await trees.add({ f: content })).get("f") as CID;
    const tree = await openFile(cid, trees.read);
    const signals: AbortSignal[] = [];
    const reads = new FileReadahead(({ signal }) => {
      if (signal !== undefined) signals.push(signal);
      return trees.read;
    }, new BufferPool());
    const { signal } = new AbortController();
    const streams: AbortSignal[] = [];
    const go = (id: number, at: number) => reads.read({ id, tree }, at * piece, piece, signal);
    try {
      for (let id = 0; id < 33; id += 1) {
        for (let at = 0; at < 2; at += 1) await go(id, at);
        streams.push(signals.at(-1) as AbortSignal);
        await go(0, id + 2);
      }
      assert.deepEqual(
        streams.flatMap(({ aborted }, id) => (aborted ? [id] : [])),
        [1],
      );
    } finally {
      reads.close();
    }
    assert.ok(streams.every(({ aborted }) => aborted));
  });
});
