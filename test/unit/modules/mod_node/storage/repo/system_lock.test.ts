import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openNode } from "#node/node/open.ts";
import { lockRepo } from "#node/storage/repo/lock.ts";
import { isLockedElsewhere } from "#node/storage/repo/system_lock.ts";
import { unpack } from "#test/support/unpack.ts";
import { makeGoIpfsRepo } from "#test/unit/modules/mod_node/migration/from_go_ipfs/go_ipfs_repo.ts";
import { emptyFolder } from "./support.ts";

const skip = !(existsSync("/proc/locks") && existsSync("/usr/bin/flock")) && "there is no /proc/locks, or no flock(1)";

/** Locks a file with a system lock, as go-ipfs does. */
async function holder(t: TestContext, path: string): Promise<ChildProcess> {
  const child = spawn("/usr/bin/flock", ["--nonblock", path, "sh", "-c", "echo held; exec cat"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  await once(child.stdout as NodeJS.ReadableStream, "data");
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.stdin?.end();
  await ended;
}

test("a file that another process has locked is distinguished from an unlocked one", { skip }, async (t) => {
  const folder = await emptyFolder(t);
  const path = join(folder, "LOCK");
  assert.equal(await isLockedElsewhere(path), false);
  await writeFile(path, "");
  assert.equal(await isLockedElsewhere(path), false);
  const child = await holder(t, path);
  assert.equal(await isLockedElsewhere(path), true);
  assert.equal(await isLockedElsewhere(path, join(folder, "nothing")), undefined);
  await end(child);
  assert.equal(await isLockedElsewhere(path), false);
});

test("the same inode number in another file system is not mistaken for the file", async (t) => {
  const folder = await emptyFolder(t);
  const path = join(folder, "LOCK");
  await writeFile(path, "");
  const { ino } = await stat(path);
  const locks = join(folder, "locks");
  // This process does not have it open; a process that cannot be inspected may have.
  await writeFile(locks, `1: FLOCK  ADVISORY  WRITE ${process.pid} fe:00:${ino} 0 EOF\n`);
  assert.equal(await isLockedElsewhere(path, locks), process.platform !== "linux");
  await writeFile(locks, `1: POSIX  ADVISORY  WRITE 999999999 fe:00:${ino} 0 EOF\n`);
  assert.equal(await isLockedElsewhere(path, locks), true);
  await writeFile(locks, `1: POSIX  ADVISORY  WRITE 999999999 fe:00:${ino}1 0 EOF\n`);
  assert.equal(await isLockedElsewhere(path, locks), false);
});

test("the lock of go-ipfs is respected while go-ipfs runs, and taken when it is stale", { skip }, async (t) => {
  const folder = await emptyFolder(t);
  await writeFile(join(folder, "repo.lock"), "");
  const child = await holder(t, join(folder, "repo.lock"));
  await assert.rejects(lockRepo(folder), { code: "REPO_LOCKED" });
  assert.equal((await stat(join(folder, "repo.lock"))).size, 0);
  await end(child);
  await (await lockRepo(folder)).release();
});

test("a start is refused while another program has the database of go-ipfs", { skip }, async (t) => {
  const repo = join(await emptyFolder(t), "repo");
  await mkdir(repo);
  await makeGoIpfsRepo(repo);
  const levels = join(repo, "datastore");
  const child = await holder(t, join(levels, "LOCK"));
  await assert.rejects(openNode({ repo, offline: true }), {
    code: "DATABASE_IN_USE",
    message: `${levels} is in use by another program: stop it first`,
  });
  await end(child);
  await (await openNode({ repo, offline: true })).close();
});

test("a start is refused while Kubo has its Pebble database", { skip }, async (t) => {
  const repo = join(await emptyFolder(t), "repo");
  await unpack(new URL("../../../../../fixtures/kubo/everything.tar.gz", import.meta.url), repo);
  const pebble = join(repo, "pebbleds");
  const child = await holder(t, join(pebble, "LOCK"));
  await assert.rejects(openNode({ repo, offline: true }), {
    code: "DATABASE_IN_USE",
    message: `${pebble} is in use by another program: stop it first`,
  });
  await end(child);
  await (await openNode({ repo, offline: true })).close();
});
