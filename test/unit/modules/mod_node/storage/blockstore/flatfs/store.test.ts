import assert from "node:assert/strict";
import { appendFile, chmod, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { create } from "multiformats/hashes/digest";
import { sha256 } from "#node/formats/cid/hashes.ts";
import { parseCid } from "#node/formats/cid/text.ts";
import { diskFs, type FlatfsFs } from "#node/storage/blockstore/flatfs/files.ts";
import { nameOf, shardFunc } from "#node/storage/blockstore/flatfs/layout.ts";
import { openFlatfs } from "#node/storage/blockstore/flatfs/store.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import { eventually } from "#test/support/eventually.ts";
import { blockContract } from "#test/unit/modules/mod_node/storage/blockstore/contract.ts";
import {
  contents,
  contentsOf,
  keysOf,
  legacy,
  raw,
  sample,
  samples,
} from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";

blockContract("flatfs", async (t) => openFlatfs(join(await emptyFolder(t), "blocks"), { verifyOnRead: true }));

const text = (path: string) => readFile(path, "utf8");

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
    .sort();
}

/** The real file system, with faults that a test adds. */
const withFaults = (faults: Partial<FlatfsFs>): FlatfsFs => ({ ...diskFs, ...faults });

test("files and folders have the layout of go-ipfs", async (t) => {
  const folder = join(await emptyFolder(t), "blocks");
  const store = await openFlatfs(folder);
  // Facts about a repo that go-ipfs made.
  const leaf = parseCid("bafkreiawoejdmkw3hmqedqi7om3ug6ds7hmcdzl6rq7n22gypioqxk6q6u");
  const old = parseCid("QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN");
  await store.put([
    { cid: leaf, bytes: Buffer.from("hello2\n") },
    { cid: old, bytes: Buffer.from("\n\x0c\b\x02\x12\x06hello\n\x18\x06") },
  ]);
  await store.sync();
  assert.equal(await store.check(leaf), true);
  assert.equal(await store.check(old), true);
  await store.close();
  const file = "Q6/AFKREIAWOEJDMKW3HMQEDQI7OM3UG6DS7HMCDZL6RQ7N22GYPIOQXK6Q6U.data";
  assert.deepEqual(await filesIn(folder), [
    "MV/CIQKK2HEATMOVWXMSJNMHPA3GYSZYD3NOAAA24U43EMMI2UDN5EXMVY.data",
    file,
    "SHARDING",
    "_README",
    "diskUsage.cache",
  ]);
  assert.equal(await text(join(folder, "SHARDING")), "/repo/flatfs/shard/v1/next-to-last/2\n");
  assert.equal(await text(join(folder, file)), "hello2\n");
  const mode = async (path: string) => ((await stat(join(folder, path))).mode & 0o777).toString(8);
  assert.deepEqual(await Promise.all([file, "Q6", "_README"].map(mode)), ["600", "755", "444"]);
});

test("the disk usage is stored in the format of go-ipfs", async (t) => {
  const folder = join(await emptyFolder(t), "blocks");
  const usage = async () => JSON.parse(await text(join(folder, "diskUsage.cache")));
  const store = await openFlatfs(folder);
  const before = (await store.stat()).bytes;
  assert.ok(before > 0);
  const block = sample(1, 5000);
  await store.put([block]);
  await store.sync();
  const folderSize = (await stat(join(folder, nameOf(block.cid).slice(-3, -1)))).size;
  assert.equal((await store.stat()).bytes, before + 5000 + folderSize);
  await store.delete([block.cid]);
  assert.equal((await store.stat()).bytes, before + folderSize);
  await store.close();
  assert.deepEqual(await usage(), { diskUsage: before + folderSize, accuracy: "initial-exact" });
  assert.match(await text(join(folder, "diskUsage.cache")), /^\{"diskUsage":\d+,"accuracy":"initial-exact"\}\n$/);

  await writeFile(join(folder, "diskUsage.cache"), '{"diskUsage":12345,"accuracy":"initial-approximate"}\n');
  const again = await openFlatfs(folder);
  assert.equal((await again.stat()).bytes, 12345);
  await again.put([block]);
  await again.close();
  assert.deepEqual(await usage(), { diskUsage: 17345, accuracy: "initial-approximate" });

  await writeFile(join(folder, "diskUsage.cache"), "nonsense");
  const counted = await openFlatfs(folder);
  assert.ok((await counted.stat()).bytes > 5000);
  await counted.close();
});

test("blocks that were put exist after the store is opened again, and drafts are gone", async (t) => {
  const folder = join(await emptyFolder(t), "blocks");
  const blocks = [...samples(100), { cid: legacy(sample(3).cid), bytes: sample(3).bytes }];
  const store = await openFlatfs(folder);
  await store.put(blocks);
  await store.close();
  await writeFile(join(folder, ".temp", "temp-123"), "half");
  const again = await openFlatfs(folder, { verifyOnRead: true });
  assert.deepEqual(await contents(again), contentsOf(blocks));
  assert.deepEqual(await readdir(join(folder, ".temp")), []);
  await again.close();
});

test("a block gets its name only when all of it is on the disk, and is reported as durable only then", async (t) => {
  const folder = join(await emptyFolder(t), "blocks");
  const steps: string[] = [];
  const fs = withFaults({
    async write(path, bytes) {
      await diskFs.write(path, bytes);
      steps.push("written");
    },
    async rename(from, to) {
      assert.equal(steps.at(-1), "written");
      await diskFs.rename(from, to);
      steps.push("named");
    },
    async syncFolder(path) {
      await diskFs.syncFolder(path);
      steps.push(`synced ${path.slice(folder.length)}`);
    },
  });
  const store = await openFlatfs(folder, { fs });
  const { cid, bytes } = sample(1);
  await store.put([{ cid, bytes }]);
  assert.deepEqual(steps, []);
  await store.sync();
  assert.deepEqual(steps.slice(0, 2), ["written", "named"]);
  assert.deepEqual(steps.slice(2).sort(), ["synced ", `synced /${nameOf(cid).slice(-3, -1)}`]);
  await store.close();
});

test("blocks that nobody syncs, such as blocks from peers, are soon in their files", async (t) => {
  const folder = join(await emptyFolder(t), "blocks");
  const store = await openFlatfs(folder);
  const blocks = samples(20);
  await store.put(blocks);
  const written = async () => (await filesIn(folder)).filter((name) => name.endsWith(".data")).length;
  await eventually("all blocks have files", async () => (await written()) === 20);
  await store.close();
});

test("a full disk is reported, reads and deletions continue, and no acknowledged block is lost", async (t) => {
  const folder = join(await emptyFolder(t), "blocks");
  let full = false;
  const fs = withFaults({
    write: (path, bytes) =>
      full
        ? Promise.reject(Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC" }))
        : diskFs.write(path, bytes),
  });
  const store = await openFlatfs(folder, { fs, bufferedBytes: 10_000 });
  const usageFile = samples(20, 1000);
  await store.put(usageFile);
  await store.sync();
  full = true;
  const refused = { code: "STORE_FULL", message: /cannot write to .*ENOSPC/ };
  const more = samples(40, 1000, 100);
  await assert.rejects(store.put(more), refused);
  await assert.rejects(store.sync(), refused);
  for (const { cid, bytes } of usageFile) assert.deepEqual(await store.get(cid), bytes);
  assert.deepEqual(await store.delete([(usageFile[0] as (typeof usageFile)[0]).cid]), [true]);
  full = false;
  await store.put(more);
  await store.sync();
  assert.deepEqual(await contents(store), contentsOf([...usageFile.slice(1), ...more]));
  await store.close();
});

test("memory of a block is released once, when the block is in its file or not needed", async (t) => {
  const store = await openFlatfs(join(await emptyFolder(t), "blocks"));
  const released: string[] = [];
  const pool = (name: string, seed: number) => ({ ...sample(seed), release: () => void released.push(name) });
  await store.put([pool("first", 1), pool("twice", 1), pool("deleted", 2)]);
  assert.deepEqual(released, ["twice"]);
  const seen = (await store.get(sample(1).cid)) as Uint8Array;
  assert.deepEqual(await store.delete([sample(2).cid]), [true]);
  assert.deepEqual(released, ["twice", "deleted"]);
  await store.sync();
  assert.deepEqual(released, ["twice", "deleted", "first"]);
  await store.put([pool("stored", 1)]);
  assert.deepEqual(released.at(-1), "stored");
  // The store copied the block: the owner may overwrite it from now on.
  assert.deepEqual(seen, sample(1).bytes);
  await store.close();
});

test("a concurrent deletion and put of one block leave it whole or gone", async (t) => {
  const store = await openFlatfs(join(await emptyFolder(t), "blocks"));
  const blocks = samples(50);
  for (let round = 0; round < 10; round += 1) {
    await store.put(blocks);
    const syncing = store.sync();
    const deleting = store.delete(blocks.map(({ cid }) => cid));
    const putting = store.put(blocks).then(() => store.sync());
    await Promise.all([syncing, deleting, putting]);
    // The last call wins.
    assert.deepEqual(await contents(store), contentsOf(blocks));
  }
  await store.close();
});

test("a damaged file is not returned, and foreign files are ignored", async (t) => {
  const folder = join(await emptyFolder(t), "blocks");
  const store = await openFlatfs(folder, { verifyOnRead: true });
  const { cid, bytes } = sample(1);
  await store.put([{ cid, bytes }]);
  await store.sync();
  const name = nameOf(cid);
  await appendFile(join(folder, name.slice(-3, -1), `${name}.data`), "x");
  await assert.rejects(store.get(cid), { code: "BLOCK_CORRUPT" });
  assert.equal(await store.check(cid), false);
  await writeFile(join(folder, name.slice(-3, -1), "put-12345"), "left by an older program");
  await writeFile(join(folder, name.slice(-3, -1), "NOCID.data"), "?");
  await writeFile(join(folder, name.slice(-3, -1), ".hidden.data"), "?");
  assert.deepEqual(await keysOf(store), [cid.toString()]);
  await store.close();
});

test("a folder that is not a flatfs is refused with the reason", async (t) => {
  const folder = join(await emptyFolder(t), "blocks");
  await mkdir(join(folder, "AA"), { recursive: true });
  const broken = (reason: RegExp) => ({ code: "STORE_BROKEN", message: reason });
  await assert.rejects(openFlatfs(folder), broken(/directory missing SHARDING file/));
  await writeFile(join(folder, "SHARDING"), "/repo/flatfs/shard/v1/prefix/2\n");
  await assert.rejects(
    openFlatfs(folder),
    broken(/specified shard func '.*next-to-last\/2' does not match repo shard func '.*prefix\/2'/),
  );
  await (await openFlatfs(folder, { shardFunc: "/repo/flatfs/shard/v1/prefix/2" })).close();
  await writeFile(join(folder, "SHARDING"), "/repo/flatfs/shard/v2/odd/2\n");
  await assert.rejects(
    openFlatfs(folder, { shardFunc: "/repo/flatfs/shard/v2/odd/2" }),
    broken(/invalid shard identifier: \/repo\/flatfs\/shard\/v2\/odd\/2/),
  );
});

test("a folder that cannot be written is refused", {
  skip: process.getuid?.() === 0 && "root may write anywhere",
}, async (t) => {
  const folder = await emptyFolder(t);
  await chmod(folder, 0o555);
  await assert.rejects(openFlatfs(join(folder, "blocks")), { code: "STORE_FULL" });
});

test("the shard functions are those of go-ipfs", () => {
  const folders = (text: string) => ["ABCDEF", "AB", ""].map(shardFunc(`/repo/flatfs/shard/v1/${text}`));
  assert.deepEqual(folders("prefix/3"), ["ABC", "AB_", "___"]);
  assert.deepEqual(folders("suffix/3"), ["DEF", "_AB", "___"]);
  assert.deepEqual(folders("next-to-last/2"), ["DE", "_A", "__"]);
});

test("a CID that is longer than a file name is refused", async (t) => {
  const store = await openFlatfs(join(await emptyFolder(t), "blocks"));
  t.after(() => store.close());
  const long = CID.createV1(raw, create(sha256.code, new Uint8Array(160)));
  await assert.rejects(store.put([{ cid: long, bytes: new Uint8Array(1) }]), /it is too long/);
});

test("a put replaces a file that has other bytes or fewer bytes", async (t) => {
  const folder = join(await emptyFolder(t), "blocks");
  const blocks = samples(3, 1000);
  const [sound, bad, short] = blocks as [Block, Block, Block];
  const store = await openFlatfs(folder, { verifyOnRead: true });
  t.after(() => store.close());
  await store.put(blocks);
  await store.sync();
  const before = await store.stat();
  const pathOf = ({ cid }: Block) =>
    join(folder, shardFunc("/repo/flatfs/shard/v1/next-to-last/2")(nameOf(cid, "cid")), `${nameOf(cid, "cid")}.data`);
  for (const [block, bytes] of [
    [bad, Buffer.from(bad.bytes.map((byte, at) => (at === 500 ? byte ^ 1 : byte)))],
    [short, short.bytes.subarray(0, 10)],
  ] as const) {
    await chmod(pathOf(block), 0o644);
    await writeFile(pathOf(block), bytes);
  }
  await assert.rejects(store.get(bad.cid), { code: "BLOCK_CORRUPT" });
  const unchanged = await stat(pathOf(sound));
  const reportedCids: string[] = [];
  await store.put(blocks, { onNew: (cid) => reportedCids.push(String(cid)) });
  await store.sync();
  assert.deepEqual(reportedCids, []);
  assert.deepEqual(await contents(store), contentsOf(blocks));
  assert.equal((await stat(pathOf(sound))).ino, unchanged.ino);
  const after = await store.stat();
  assert.ok(after.bytes - before.bytes < 1000, `${after.bytes - before.bytes} bytes more`);
});
