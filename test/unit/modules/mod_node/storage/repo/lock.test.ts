import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { removeStaleClaims } from "#node/storage/repo/lease.ts";
import { ownLease } from "#node/storage/repo/lease_holder.ts";
import { lockHolder, lockRepo } from "#node/storage/repo/lock.ts";
import { ownProcess } from "#node/storage/repo/process.ts";
import { emptyFolder } from "./support.ts";

const program = fileURLToPath(new URL("./contender.ts", import.meta.url));

async function contender(t: TestContext, folder: string): Promise<ChildProcess> {
  const child = fork(program, [folder], { execArgv: ["--conditions=source"] });
  t.after(() => child.kill("SIGKILL"));
  await reply(child);
  return child;
}

async function reply(child: ChildProcess): Promise<string> {
  const [message] = await once(child, "message");
  return String(message);
}

function order(child: ChildProcess, what: "take" | "release"): Promise<string> {
  const outcomes = reply(child);
  child.send(what);
  return outcomes;
}

const refusal = (folder: string) => `lock ${join(folder, "repo.lock")}: someone else has the lock`;

/** Returns the pid of a process that has ended. */
async function deadPid(): Promise<number> {
  const child = fork(program, [], { execArgv: ["-e", "0"], stdio: "ignore" });
  await once(child, "exit");
  return child.pid as number;
}

test("only one holder at a time: in this process, and in another", async (t) => {
  const folder = await emptyFolder(t);
  const lock = await lockRepo(folder);
  assert.equal(await lockHolder(folder), `process ${process.pid}`);
  // go-ipfs only accepts an empty lock file.
  assert.equal((await stat(join(folder, "repo.lock"))).size, 0);
  await assert.rejects(lockRepo(folder), { message: refusal(folder), code: "REPO_LOCKED" });
  const other = await contender(t, folder);
  assert.equal(await order(other, "take"), refusal(folder));
  await lock.release();
  await lock.release();
  assert.equal(await order(other, "take"), "won");
  await assert.rejects(lockRepo(folder), { code: "REPO_LOCKED" });
  await order(other, "release");
  assert.deepEqual(await readdir(folder), []);
});

test("the lock of a killed process is free immediately", async (t) => {
  const folder = await emptyFolder(t);
  const other = await contender(t, folder);
  assert.equal(await order(other, "take"), "won");
  other.kill("SIGKILL");
  await once(other, "exit");
  assert.deepEqual((await readdir(folder)).sort(), ["repo.lease", "repo.lock"]);
  await (await lockRepo(folder)).release();
  assert.deepEqual(await readdir(folder), []);
});

test("a lock of an earlier version is ignored when its pid was reused or it names nobody", async (t) => {
  const folder = await emptyFolder(t);
  const own = await ownProcess();
  const dead = { pid: await deadPid(), began: own.began };
  for (const left of [JSON.stringify({ ...own, began: "earlier" }), JSON.stringify(dead), "", "{", "[]", "{}"]) {
    await writeFile(join(folder, "repo.lock"), left);
    await (await lockRepo(folder)).release();
  }
  await writeFile(join(folder, "repo.lock"), JSON.stringify(own));
  await assert.rejects(lockRepo(folder), { code: "REPO_LOCKED" });
});

test("exactly one of many processes that race for a stale lock gets it", { timeout: 300_000 }, async (t) => {
  const folder = await emptyFolder(t);
  const many = await Promise.all(Array.from({ length: 10 }, () => contender(t, folder)));
  const stale = JSON.stringify({ ...(await ownLease(folder, "")), pid: await deadPid(), began: "earlier" });
  for (let round = 0; round < 15; round += 1) {
    await writeFile(join(folder, "repo.lease"), stale);
    const outcomes = await Promise.all(many.map((child) => order(child, "take")));
    assert.equal(outcomes.filter((message) => message === "won").length, 1, outcomes.join());
    assert.ok(
      outcomes.every((message) => message === "won" || message === refusal(folder)),
      outcomes.join(),
    );
    await Promise.all(many.map((child) => order(child, "release")));
    assert.deepEqual(await readdir(folder), []);
  }
});

test("claims of dead processes do no harm and can be removed", async (t) => {
  const folder = await emptyFolder(t);
  const dead = JSON.stringify({ ...(await ownLease(folder, "")), pid: await deadPid(), began: "earlier" });
  await writeFile(join(folder, "repo.lease-1-a"), dead);
  await writeFile(join(folder, "repo.lease-2-b"), dead);
  const lock = await lockRepo(folder);
  assert.deepEqual(await removeStaleClaims(folder), ["repo.lease-1-a", "repo.lease-2-b"]);
  assert.deepEqual((await readdir(folder)).sort(), ["repo.lease", "repo.lock"]);
  await lock.release();
});

test("removing the lock file frees nothing, because the lease still exists", async (t) => {
  const folder = await emptyFolder(t);
  const lock = await lockRepo(folder);
  await rm(join(folder, "repo.lock"));
  const other = await contender(t, folder);
  assert.equal(await order(other, "take"), refusal(folder));
  await lock.release();
  assert.equal(await order(other, "take"), "won");
});
