import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { followNames } from "#node/content/resolver/resolve.ts";
import { entries, lookup } from "#node/content/unixfs/list.ts";
import { openFile } from "#node/content/unixfs/open.ts";
import { failure } from "#node/util/errors.ts";
import { blocksIn } from "#test/support/car_blocks.ts";

const folder = new URL("../../../../../fixtures/gateway/", import.meta.url);
const { cids } = JSON.parse(readFileSync(new URL("fixtures.json", folder), "utf8")) as { cids: Record<string, string> };
const blocks = new Map(
  blocksIn(readFileSync(new URL("fixtures.car", folder))).map(({ cid, bytes }) => [String(cid), bytes]),
);
const read = async (cid: CID) => {
  const bytes = blocks.get(String(cid));
  if (bytes === undefined) throw failure("NODE_NOT_FOUND");
  return bytes;
};
const cidOf = (name: string) => CID.parse(cids[name] as string);

test("a directory with eight slots per shard is listed, and each name is found", async () => {
  const directory = await openFile(cidOf("shard"), read);
  assert.equal(directory.unixfs.fanout, 8);
  const names = (await Array.fromAsync(entries(directory, read))).map(({ name }) => name);
  assert.equal(names.length, 24);
  for (const name of names) assert.equal((await lookup(directory, name, read))?.name, name);
  assert.equal(await lookup(directory, "entry-99.txt", read), undefined);
});

test("a resolved path has the block of each segment, without inner shards", async () => {
  const rootsOf = async (root: string, ...names: string[]) =>
    (await followNames(cidOf(root), names, read)).roots.map(
      (cid) => Object.entries(cids).find(([, id]) => id === String(cid))?.[0],
    );
  assert.deepEqual(await rootsOf("site", "hello.txt"), ["site", "hello"]);
  assert.deepEqual(await rootsOf("siteV0", "hello.txt"), ["siteV0", "helloV0"]);
  assert.deepEqual(await rootsOf("dagcbor", "nested", "n", "2"), ["dagcbor", "dagcbor", "dagcbor", "hello"]);
  assert.deepEqual(await rootsOf("dagjson", "doc", "file"), ["dagjson", "dagcbor", "hello"]);
  assert.equal((await rootsOf("shard", "entry-17.txt")).length, 2);
  assert.deepEqual(await rootsOf("dagcbor", "name"), ["dagcbor", "dagcbor"]);
});

test("a file has the mode and time of its node", async () => {
  const { unixfs } = await openFile(cidOf("mtime"), read);
  assert.deepEqual([unixfs.mtime, unixfs.mode], [{ seconds: 1_700_000_000, nanoseconds: 0 }, 0o644]);
  const other = await openFile(cidOf("helloV0"), read);
  assert.deepEqual([other.unixfs.mtime, other.unixfs.mode], [undefined, undefined]);
});
