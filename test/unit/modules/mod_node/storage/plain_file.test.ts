/** Pipes and folders at paths where the node expects files. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { Denylists } from "#node/content/denylists/denylists.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import { Filestore } from "#node/storage/filestore/filestore.ts";
import { decodeReference, encodeReference, statuses } from "#node/storage/filestore/reference.ts";
import { KeyFiles } from "#node/storage/keystore/key_files.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { readPlainFile } from "#node/storage/plain_file.ts";
import { openRepo } from "#node/storage/repo/repo.ts";
import { byteText } from "#node/util/byte_text.ts";
import { sample } from "./blockstore/samples.ts";

const skip = process.platform === "win32" && "there are no pipes in folders";

async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-plain-"));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

const fifo = (path: string) => execFileSync("mkfifo", [path]);

describe("a pipe instead of a file is reported by its path and never opened", { skip }, () => {
  test("a pipe at the path of a filestore reference is reported", async (t) => {
    const root = await folderOf(t);
    const store = new Filestore(memoryBlocks(), memoryMetadata(), { root, files: true, urls: true });
    const block = sample(1, 200);
    const path = join(root, "a");
    await writeFile(path, block.bytes);
    await store.put([{ ...block, at: { path, offset: 0 } }]);
    await rm(path);
    fifo(path);
    const { status, message } = (await store.inspect(block.cid)) ?? {};
    assert.deepEqual([status, message], [statuses.fileError, `open ${path}: ${path} is not a regular file`]);
    await assert.rejects(store.get(block.cid), /is not a regular file/);
  });

  test("a pipe instead of a key is reported, also behind a link", async (t) => {
    const folder = await folderOf(t);
    fifo(join(folder, "pipe"));
    await symlink("pipe", join(folder, "key_mfra"));
    await assert.rejects(new KeyFiles(folder).get("ab"), /key_mfra is not a regular file/);
  });

  test("a pipe instead of a denylist is reported, and the other denylists stay in effect", async (t) => {
    const folder = await folderOf(t);
    fifo(join(folder, "a.deny"));
    await writeFile(join(folder, "b.deny"), "/ipfs/QmS5qqCDCtCxTjiyHG7BzX4M1Ysa1K7a4cPCwgnwaEuYS9\n");
    const warned: string[] = [];
    const lists = new Denylists({ folders: [folder], warn: (text) => warned.push(text), changed: () => {} });
    await lists.reread();
    assert.equal(warned.length, 1);
    assert.match(warned[0] as string, /Cannot read the denylist .*a\.deny.*is not a regular file/);
    assert.throws(() => lists.requirePath("ipfs", "QmS5qqCDCtCxTjiyHG7BzX4M1Ysa1K7a4cPCwgnwaEuYS9", []));
  });

  test("a pipe instead of the configuration is reported, the current one stays, and a later file can be read", async (t) => {
    const folder = await folderOf(t);
    const repo = await openRepo(folder, { profile: "test" });
    t.after(() => repo.close());
    const path = join(folder, "config");
    await rename(path, join(folder, "kept"));
    fifo(path);
    await assert.rejects(repo.config.reread(), /config is not a regular file/);
    await assert.rejects(
      repo.config.set("Gateway.NoFetch", () => true),
      /config is not a regular file/,
    );
    await rename(join(folder, "kept"), path);
    assert.equal(await repo.config.set("Gateway.NoFetch", () => true), true);
  });

  test("a repo with a pipe instead of its version does not open", async (t) => {
    const folder = await folderOf(t);
    await (await openRepo(folder, { profile: "test" })).close();
    await rm(join(folder, "version"));
    fifo(join(folder, "version"));
    await assert.rejects(openRepo(folder, { init: false }));
  });

  test("a folder causes the system's own error", async (t) => {
    const folder = await folderOf(t);
    await mkdir(join(folder, "d"));
    await assert.rejects(readPlainFile(join(folder, "d")), { code: "EISDIR" });
  });
});

test("a filestore reference preserves a path that is not UTF-8, and the file is found", { skip }, async (t) => {
  const root = await folderOf(t);
  const store = new Filestore(memoryBlocks(), memoryMetadata(), { root, files: true, urls: true });
  const block = sample(1, 200);
  const path = byteText(Buffer.from("caf\xe9", "latin1"));
  await writeFile(Buffer.concat([Buffer.from(`${root}/`), Buffer.from("caf\xe9", "latin1")]), block.bytes);
  await store.put([{ ...block, at: { path: join(root, path), offset: 0 } }]);
  assert.ok(Buffer.from((await store.get(block.cid)) ?? []).equals(block.bytes));
  const reference = { path, offset: 0, size: 200 };
  assert.deepEqual(decodeReference(encodeReference(reference)), reference);
});
