import assert from "node:assert/strict";
import { test } from "node:test";
import { type ZipEntry, zipped } from "#node/util/zip.ts";
import { unzip } from "#test/support/unzip.ts";

async function archive(entries: AsyncIterable<ZipEntry> | Iterable<ZipEntry>) {
  const pieces: Uint8Array[] = [];
  let failed: unknown;
  try {
    for await (const piece of zipped(entries)) pieces.push(piece);
  } catch (error) {
    failed = error;
  }
  return { bytes: Buffer.concat(pieces), failed };
}

test("unzipping an archive returns its entries", async () => {
  const entries = [
    { name: "a/ä.txt", content: Buffer.from("text".repeat(1000)) },
    { name: "empty", content: Buffer.alloc(0) },
    { name: "b", content: Buffer.from([0, 255]) },
  ];
  const { bytes } = await archive(entries);
  assert.ok(bytes.length < 1000);
  assert.deepEqual(
    [...unzip(bytes)],
    entries.map(({ name, content }) => [name, content]),
  );
});

test("an archive may be empty, and one whose entries fail ends with those before the failure", async () => {
  assert.equal((await archive([])).bytes.length, 22);
  async function* failing() {
    yield { name: "a", content: Buffer.from("a") };
    throw new Error("no more");
  }
  const { bytes, failed } = await archive(failing());
  assert.deepEqual([...unzip(bytes).keys()], ["a"]);
  assert.equal((failed as Error).message, "no more");
});
