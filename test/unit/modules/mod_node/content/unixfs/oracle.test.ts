/** Compares the importer with ipfs-unixfs-importer, where that one equals the reference. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MemoryBlockstore } from "blockstore-core";
import { type ImporterOptions, importer } from "ipfs-unixfs-importer";
import { fixedSize } from "ipfs-unixfs-importer/chunker";
import { balanced } from "ipfs-unixfs-importer/layout";
import { keystream } from "#test/support/content.ts";
import { Trees } from "./trees.ts";

type Files = Readonly<Record<string, Uint8Array | string>>;

async function oracle(files: Files, options: ImporterOptions): Promise<Map<string, string>> {
  const source = Object.entries(files).map(([path, content]) => ({ path, content: Buffer.from(content) }));
  const found = new Map<string, string>();
  const chunked = { cidVersion: 0, rawLeaves: false, chunker: fixedSize({ chunkSize: 1000 }), ...options } as const;
  for await (const { path, cid } of importer(source, new MemoryBlockstore(), chunked)) {
    found.set(path ?? "", cid.toString());
  }
  return found;
}

async function compare(files: Files, ours: Parameters<Trees["add"]>[1], options: ImporterOptions, roots: string[]) {
  const own = await new Trees().add(files, ours);
  const others = await oracle(files, options);
  for (const root of roots) {
    assert.notEqual(others.get(root), undefined);
    assert.equal(own.get(root)?.toString(), others.get(root), root);
  }
}

const names = (count: number, under: string) => Array.from({ length: count }, (_, at) => `${under}/ä file ${at}`);

describe("sharded directories equal those of ipfs-unixfs-importer", () => {
  for (const count of [1, 2, 257, 5000]) {
    test(`with ${count} entries`, async () => {
      const files = Object.fromEntries(names(count, "d").map((name) => [name, name]));
      await compare(files, { sharded: true }, { shardSplitThresholdBytes: 0 }, ["d"]);
    });
  }
});

test("nested plain directories equal those of ipfs-unixfs-importer", async () => {
  const files = Object.fromEntries([...names(30, "d"), ...names(30, "d/e"), "d/e/f/g"].map((name) => [name, name]));
  await compare(files, {}, {}, ["d", "d/e", "d/e/f"]);
});

describe("files equal those of ipfs-unixfs-importer", () => {
  // Two levels of 174 links each, and one more leaf, with 1,000 bytes per leaf.
  const sizes = [0, 1, 999, 1000, 1001, 174_000, 174_001, 600_500, 5_000_001];
  const content = Buffer.concat([...keystream(Math.max(...sizes), 1)]);
  for (const rawLeaves of [false, true]) {
    const version = rawLeaves ? 1 : 0;
    const cid = { cidVersion: version, rawLeaves } as const;
    for (const size of sizes) {
      const files = { f: content.subarray(0, size) };
      test(`balanced, ${rawLeaves ? "raw" : "wrapped"} leaves, ${size} bytes`, () =>
        compare(
          files,
          { rawLeaves, version },
          // The reference stores a file with one leaf, or without any bytes, as that leaf.
          { ...cid, layout: balanced({ maxChildrenPerNode: 174 }), reduceSingleLeafToSelf: true },
          ["f"],
        ));
    }
  }
});
