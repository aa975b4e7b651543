import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { NodeModule } from "modhost/node";
import { openNode } from "#node/node/open.ts";
import { openSegmentStore } from "#node/storage/blockstore/segments/store.ts";
import { openLmdbMetadata } from "#node/storage/metadata/lmdb.ts";
import { startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { SmallDisk } from "#test/unit/modules/mod_node/storage/blockstore/segments/workshop.ts";
import { call, startLab } from "./lab.ts";

const mebibyte = 1024 * 1024;

/** Creates a folder; `leave` is called before it is removed. */
async function temporary(t: TestContext, leave = (_folder: string): void => undefined): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-disk-"));
  t.after(() => {
    leave(folder);
    return rm(folder, { recursive: true, force: true });
  });
  return folder;
}

const added = (text: string) => (JSON.parse(text.split("\n").at(-2) as string) as { Hash: string }).Hash;

test("a full disk fails adds, confirmed content survives, and free space makes adds work again", async () => {
  const disk = new SmallDisk(4 * mebibyte);
  const stores = async (folder: string) => ({
    blocks: await openSegmentStore(join(folder, "segments"), { fs: disk.fs }),
    metadata: await openLmdbMetadata(join(folder, "metadata")),
  });
  await using lab = await startLab(stores);
  const contents = Array.from({ length: 12 }, () => randomBytes(mebibyte / 2));
  const stored = new Map<string, Buffer>();
  let refused = 0;
  for (const content of contents) {
    const { status, text, message } = await call(lab, "add?quieter=true", content);
    if (message === undefined) stored.set(added(text), content);
    else {
      refused += 1;
      assert.match(message, /^the block store cannot write to .*segments: .*ENOSPC.*; free space or move the repo/);
      assert.equal(status, 500);
    }
  }
  assert.ok(stored.size >= 5 && refused >= 4, `${stored.size} kept, ${refused} refused`);
  const block = await call(lab, "block/put?pin=true", randomBytes(mebibyte / 4));
  assert.match(block.message ?? "", /ENOSPC/);
  const readAll = async () => {
    for (const [cid, content] of stored) {
      const file = await lab.node.resolve(cid);
      assert.equal(String(file.cid), cid);
      assert.ok((await call(lab, `cat?arg=${cid}`)).bytes.equals(content));
    }
  };
  await readAll();
  assert.equal((await call(lab, "version")).status, 200);
  disk.left = 64 * mebibyte;
  const after = await call(lab, "add?quieter=true", contents[0] as Buffer);
  assert.deepEqual([after.status, after.message], [200, undefined]);
  stored.set(added(after.text), contents[0] as Buffer);
  await readAll();
  const verified = await call<{ Msg: string }>(lab, "repo/verify");
  assert.equal(verified.values.at(-1)?.Msg, "verify complete, all blocks validated.");
});

test("a disk that fills up during files/write leaves that file and all others unchanged", async () => {
  const disk = new SmallDisk(2.5 * mebibyte);
  const stores = async (folder: string) => ({
    blocks: await openSegmentStore(join(folder, "segments"), { fs: disk.fs }),
    metadata: await openLmdbMetadata(join(folder, "metadata")),
  });
  await using lab = await startLab(stores);
  const stored = randomBytes(mebibyte / 2);
  const other = randomBytes(mebibyte / 2);
  const write = (path: string, content: Buffer) => call(lab, `files/write?create=true&arg=${path}`, content);
  const read = async (path: string) => (await call(lab, `files/read?arg=${path}`)).bytes;
  for (const [path, content] of [
    ["/kept", stored],
    ["/other", other],
  ] as const) {
    assert.equal((await write(path, content)).message, undefined);
  }
  const before = (await call(lab, "files/stat?arg=/")).text;
  for (const path of ["/kept", "/other&truncate=true", "/new"]) {
    const { status, message } = await write(path, randomBytes(3 * mebibyte));
    assert.equal(status, 500, path);
    assert.match(message ?? "", /^the block store cannot write to .*segments: .*ENOSPC.*; free space or move the repo/);
  }
  assert.ok((await read("/kept")).equals(stored));
  assert.ok((await read("/other")).equals(other));
  assert.equal((await call(lab, "version")).status, 200);
  disk.left = 64 * mebibyte;
  const after = randomBytes(3 * mebibyte);
  assert.equal((await write("/new", after)).message, undefined);
  assert.equal((await call(lab, "repo/gc")).message, undefined);
  for (const [path, content] of [
    ["/kept", stored],
    ["/other", other],
    ["/new", after],
  ] as const) {
    assert.ok((await read(path)).equals(content), path);
  }
  assert.notEqual((await call(lab, "files/stat?arg=/")).text, before);
  assert.equal((await call(lab, "repo/verify")).values.at(-1)?.Msg, "verify complete, all blocks validated.");
});

/** Mounts a file system of a few megabytes on a folder; returns false if that is impossible. */
function mountSmall(folder: string, megabytes: number): boolean {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return false;
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", folder], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

test("a real full file system, metadata included, loses nothing", async (t) => {
  let mounted = false;
  const folder = await temporary(t, (at) => {
    if (mounted) execFileSync("umount", [at]);
  });
  mounted = mountSmall(folder, 16);
  if (!mounted) return t.skip("this user cannot mount file systems");
  const repo = join(folder, "repo");
  const host = await startRpc({ node_repo: repo });
  const stored = new Map<string, Buffer>();
  try {
    let refused: string | undefined;
    for (let round = 0; round < 40 && refused === undefined; round += 1) {
      const content = randomBytes(mebibyte);
      const { text, message } = await call(host, "add?quieter=true", content);
      if (message === undefined) stored.set(added(text), content);
      else refused = message;
    }
    assert.match(
      refused ?? "",
      /^the block store cannot write to .* are free on the disk, .* free space or move the repo/,
    );
    assert.ok(stored.size > 8, `${stored.size} MiB of 16 were taken`);
    // Small files still fit, until even these are too much.
    for (let more = 0; more < 5; more += 1) await call(host, "add?quieter=true", randomBytes(64 * 1024));
    for (const [cid, content] of stored) assert.ok((await call(host, `cat?arg=${cid}`)).bytes.equals(content));

    // Unpinning and collecting makes room.
    const unpinned = [...stored.keys()].slice(0, 6);
    for (const cid of unpinned) {
      assert.deepEqual((await call(host, `pin/rm?arg=${cid}`)).values, [{ Pins: [cid] }]);
      stored.delete(cid);
    }
    assert.deepEqual([(await call(host, "repo/gc")).message], [undefined]);
    const content = randomBytes(mebibyte);
    const { text, message } = await call(host, "add?quieter=true", content);
    assert.equal(message, undefined);
    stored.set(added(text), content);
  } finally {
    await host.stop();
  }
  const again = await startRpc({ node_repo: repo });
  for (const [cid, content] of stored) assert.ok((await call(again, `cat?arg=${cid}`)).bytes.equals(content));
  await again.stop();
});

test("an unwritable folder is named, and the other modules keep running", async (t) => {
  const folder = await temporary(t);
  const inside = join(folder, "closed");
  await mkdir(inside);
  await writeFile(join(inside, "file"), "");
  // A file instead of the folder stops even the superuser.
  for (const repo of [join(inside, "file"), join(inside, "file", "repo")]) {
    await using host = await startRpc({ node_repo: repo });
    const state = host.host.modules().find(({ name }) => name === "node");
    assert.equal(state?.status, "failed");
    assert.match(state?.note ?? "", new RegExp(`the repo ${repo} does not open: .*(cannot be|ENOTDIR|EEXIST)`));
    assert.equal((await call(host, "version")).status, 404);
  }
  if (process.getuid?.() === 0) return;
  await chmod(inside, 0o500);
  t.after(() => chmod(inside, 0o700));
  await assert.rejects(openNode({ repo: join(inside, "repo") }), /EACCES/);
});

test("a repo that another process has open is not opened again", async (t) => {
  const folder = await temporary(t);
  await using first = await startRpc({ node_repo: folder });
  await using second = await startRpc({ node_repo: folder });
  const state = second.host.modules().find(({ name }) => name === "node");
  assert.equal(state?.status, "failed");
  assert.match(state?.note ?? "", /: it is in use by process \d+ \(its API: .*\): stop that one/);
  assert.equal((await call(first, "version")).status, 200);
});

/** Flips one byte in the middle of the content in a segment. */
async function damage(segments: string, content: Buffer): Promise<void> {
  for (const name of (await readdir(segments)).filter((each) => each.endsWith(".car"))) {
    const path = join(segments, name);
    const bytes = await readFile(path);
    const at = bytes.indexOf(content);
    if (at < 0) continue;
    const middle = at + (content.length >> 1);
    bytes[middle] = (bytes[middle] as number) ^ 1;
    await writeFile(path, bytes, { flag: "r+" });
    return;
  }
  throw new Error("The content is in no segment");
}

test("a block that was damaged on disk is named and not served, until its content is added again", async () => {
  await using host = await startRpc();
  const content = randomBytes(600 * 1024);
  const part = content.subarray(262_144, 2 * 262_144);
  const { text } = await call(host, "add?quieter=true&raw-leaves=true", content);
  const root = added(text);
  const links = await call<{ Ref: string }>(host, `refs?arg=${root}`);
  const bad = links.values[1]?.Ref as string;
  const segments = join(host.folder, "data", "repo", "segments");
  await damage(segments, part);
  const named = new RegExp(`block ${bad} is damaged on disk`);

  const cat = await call(host, `cat?arg=${root}`);
  assert.match(cat.message ?? "", named);
  assert.ok(cat.text.length < content.length);
  assert.match((await call(host, `cat?arg=${root}&offset=300000`)).message ?? "", named);
  assert.match((await call(host, `get?arg=${root}`)).message ?? "", named);
  const block = await call(host, `block/get?arg=${bad}`);
  assert.match(block.message ?? "", named);
  assert.equal(block.status, 500);
  assert.match((await call(host, `cat?arg=${bad}`)).message ?? "", named);
  const refs = await call<{ Err: string }>(host, `refs?arg=${root}`);
  assert.match(refs.values.at(-1)?.Err ?? "", named);
  // The failed reads are reported once, and in the status that the doctor shows.
  const status = () => host.host.modules().find(({ name }) => name === "node");
  assert.match(
    status()?.note ?? "",
    new RegExp(`^reads have found 1 lost or damaged blocks .* ${bad} in \\d+\\.car: `),
  );
  assert.equal(status()?.note_level, "warn");
  assert.ok(host.host.status().warnings.some((text) => text.includes(bad)));
  assert.equal(host.log().split(`a block is lost or damaged: ${bad} in `).length, 2);
  const { metrics } = host.host.exports<NodeModule>("node");
  const counter = async () =>
    (await metrics.collect()).find(({ name }) => name === "modhost_node_damaged_blocks_total");
  assert.equal((await counter())?.value, 1);
  const verified = await call<{ Msg: string }>(host, "repo/verify");
  assert.equal(verified.message, "verify complete, some blocks were corrupt");
  const faults = verified.values.filter(({ Msg }) => Msg.includes("was corrupt"));
  assert.deepEqual(
    faults.map(({ Msg }) => Msg),
    [`block ${bad} was corrupt (block in storage has different hash than requested)`],
  );
  // The rest of the file is intact.
  assert.ok((await call(host, `cat?arg=${root}&length=1000`)).bytes.equals(content.subarray(0, 1000)));

  // As the message says; this also works for a pinned block.
  assert.match(block.message ?? "", /add the same content again/);
  assert.equal(added((await call(host, "add?quieter=true&raw-leaves=true", content)).text), root);
  assert.ok((await call(host, `cat?arg=${root}`)).bytes.equals(content));
  assert.equal((await call(host, "repo/verify")).message, undefined);
  assert.equal(status()?.note_level, "info");
  assert.equal((await counter())?.value, 1);
});

test("a damaged node of a pinned tree stops a collection before anything is removed", async () => {
  await using host = await startRpc();
  const content = randomBytes(600 * 1024);
  const root = added((await call(host, "add?quieter=true", content)).text);
  const loose = added((await call(host, "add?quieter=true&pin=false", "loose")).text);
  const { bytes } = await call(host, `block/get?arg=${root}`);
  await damage(join(host.folder, "data", "repo", "segments"), bytes);
  const { message } = await call(host, "repo/gc");
  assert.match(message ?? "", new RegExp(`could not retrieve links for ${root}: block ${root} is damaged on disk`));
  assert.equal((await call(host, `cat?arg=${loose}`)).text, "loose");
  const verified = await call<{ Cid: string; BadNodes: { Err: string }[] }>(host, "pin/verify");
  assert.equal(verified.values[0]?.Cid, root);
  assert.match(verified.values[0]?.BadNodes[0]?.Err ?? "", /is damaged on disk/);
  const quiet = await call<{ Cid: string }>(host, "pin/verify?quiet=true");
  assert.deepEqual(quiet.values, [{ Cid: root, PinStatus: { Ok: false }, Ok: false }]);
});
