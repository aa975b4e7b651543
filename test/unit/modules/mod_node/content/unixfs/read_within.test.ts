import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { CID } from "multiformats/cid";
import { type UnixfsNode, unixfsNode } from "#node/content/unixfs/node.ts";
import { readWithin } from "#node/content/unixfs/read_within.ts";
import { goRandom } from "#test/support/go_random.ts";
import { Trees } from "./trees.ts";

const rawLeaves = { rawLeaves: true, version: 1 as const };
const LEAF = 16 * 1024;
/** Two nodes with leaves, below the root. */
const content = goRandom(3_100_000, 7);

const bytes = (from: number, length: number) => new Uint8Array(content.subarray(from, from + length));

/** Opens a file in a store that can read parts of leaves. */
async function opened(file: Uint8Array, settings = {}) {
  const trees = new Trees();
  const cid = (await trees.add({ f: file }, { chunker: `size-${LEAF}`, ...settings })).get("f") as CID;
  const root = unixfsNode(cid, await trees.read(cid)) as UnixfsNode;
  trees.requested.length = 0;
  const spans: [number, number][] = [];
  const part = async (leaf: CID, { from, to }: { from: number; to: number }) => {
    spans.push([from, to]);
    return (await trees.read(leaf)).subarray(from, to);
  };
  const read = Object.assign(async (leaf: CID) => trees.read(leaf), { part });
  const within = (offset: number, length: number) =>
    readWithin(root, { offset, length }, { read, readNode: trees.read });
  return { trees, root, within, spans };
}

test("a range within one leaf reads a part of that leaf and the nodes above it", async () => {
  const { within, trees, spans } = await opened(content, rawLeaves);
  for (const offset of [0, 5, LEAF - 10, 100 * LEAF, 174 * LEAF - 10]) {
    trees.requested.length = 0;
    spans.length = 0;
    assert.deepEqual(await within(offset, 10), bytes(offset, 10), `from ${offset}`);
    assert.equal(trees.requested.length, 2);
    assert.deepEqual(spans, [[offset % LEAF, (offset % LEAF) + 10]]);
  }
});

describe("a range is left to readFile, and nothing is read,", () => {
  test("if it crosses two leaves, or ends beyond the file", async () => {
    const { within, trees } = await opened(content.subarray(0, 10 * LEAF), rawLeaves);
    assert.equal(await within(LEAF - 1, 2), undefined);
    assert.equal(await within(10 * LEAF - 1, 2), undefined);
    assert.equal(await within(10 * LEAF, 1), undefined);
    assert.deepEqual(trees.requested, []);
  });

  test("if leaves are dag-pb, or if a small node may be dag-pb", async () => {
    for (const [file, settings, offset] of [
      [content.subarray(0, 10 * LEAF), {}, 0],
      [content, rawLeaves, 174 * LEAF],
    ] as const) {
      const { within, trees } = await opened(file, settings);
      assert.equal(await within(offset, 10), undefined);
      assert.deepEqual(trees.requested, []);
    }
  });
});

test("a leaf that is shorter than its node claims is left to readFile, and a missing leaf is reported", async () => {
  const { within, trees, root } = await opened(content.subarray(0, 10 * LEAF), rawLeaves);
  const [first, second] = root.links.map(({ cid }) => String(cid)) as [string, string];
  trees.blocks.set(first, bytes(0, 100));
  trees.blocks.delete(second);
  assert.deepEqual(await within(0, 100), bytes(0, 100));
  assert.equal(await within(95, 10), undefined);
  await assert.rejects(within(LEAF, 10), { code: "NODE_NOT_FOUND" });
});
