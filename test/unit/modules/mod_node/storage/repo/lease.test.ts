import assert from "node:assert/strict";
import { readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { uptime } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type LeaseOptions, leaseName, takeLease } from "#node/storage/repo/lease.ts";
import { isHolderAlive, type LeaseHolder, ownLease, readLease } from "#node/storage/repo/lease_holder.ts";
import { lockRepo } from "#node/storage/repo/lock.ts";
import { eventually } from "#test/support/eventually.ts";
import { emptyFolder } from "./support.ts";

const elsewhere = { host: "elsewhere", machine: "", boot: "another", space: "another pid:[1]", id: "1", pid: 7 };

/** There is no system lock, as on a file system without locks. */
function options(changes: Partial<LeaseOptions> = {}): LeaseOptions {
  const nothing = () => undefined;
  return { lock: "", times: { renewal: 20, patience: 300 }, onNotice: nothing, onLost: nothing, ...changes };
}

/** Nobody renews this lease. */
async function foreignLease(folder: string, changes: Partial<LeaseHolder> = {}): Promise<string> {
  const path = join(folder, leaseName);
  await writeFile(path, JSON.stringify({ ...(await ownLease(folder, "")), ...elsewhere, ...changes }));
  return path;
}

test("a lease of another host is watched: a renewed one refuses, and otherwise it is taken", async (t) => {
  const folder = await emptyFolder(t);
  const path = await foreignLease(folder);
  const renewal = setInterval(() => void utimes(path, new Date(), new Date()).catch(() => undefined), 10);
  const notices: string[] = [];
  const onNotice = (sentence: string) => notices.push(sentence);
  try {
    // Watching ends at the first renewal that is seen.
    const patient = { times: { renewal: 20, patience: 60_000 }, onNotice };
    assert.equal(await takeLease(folder, options(patient)), undefined);
    await assert.rejects(lockRepo(folder, patient), {
      code: "REPO_LOCKED",
      message: `lock ${join(folder, "repo.lock")}: someone else has the lock: process 7 of elsewhere, another host`,
    });
  } finally {
    clearInterval(renewal);
  }
  assert.match(
    notices.join(),
    /belongs to process 7 on elsewhere, which cannot be checked from here: watching it for 60 s/,
  );
  assert.deepEqual(await readdir(folder), [leaseName]);
  const lease = await takeLease(folder, options());
  assert.equal(JSON.parse(await readFile(path, "utf8")).pid, process.pid);
  await lease?.release();
  assert.deepEqual(await readdir(folder), []);
});

test("only one process gets the lease when there is no system lock", async (t) => {
  const folder = await emptyFolder(t);
  const taken = await Promise.all(Array.from({ length: 5 }, () => takeLease(folder, options())));
  const [lease, ...more] = taken.filter((each) => each !== undefined);
  assert.ok(lease !== undefined && more.length === 0);
  assert.equal(await takeLease(folder, options()), undefined);
  await lease.release();
  assert.deepEqual(await readdir(folder), []);
});

test("a lease is renewed, re-created after its removal, and given up to a process that has taken it", async (t) => {
  const folder = await emptyFolder(t);
  const lost = Promise.withResolvers<void>();
  const lease = await takeLease(folder, options({ onLost: lost.resolve }));
  assert.ok(lease !== undefined);
  const path = join(folder, leaseName);
  const until = (is: () => Promise<boolean>) => eventually(String(is), is, { every: 5 });
  await utimes(path, 0, 0);
  await until(async () => ((await readLease(path))?.renewed ?? 0) > 0);
  await rm(path);
  await until(async () => (await readLease(path))?.holder.pid === process.pid);
  await foreignLease(folder);
  await lost.promise;
  await lease.release();
  assert.equal((await readLease(path))?.holder.host, "elsewhere");
});

test("facts about the holder of a lease that need no waiting are returned immediately", async (t) => {
  const folder = await emptyFolder(t);
  const own = await ownLease(folder, "1:2");
  const here = { ...own, boot: "boot", machine: "machine", space: "boot pid:[1]" };
  const container = { ...here, space: "boot pid:[2]", pid: 1 };
  const rebooted = { ...container, boot: "earlier", space: "earlier pid:[1]" };
  const now = Date.now();
  const beforeBoot = now - uptime() * 1000 - 1000;
  const result: readonly (readonly [string, Partial<LeaseHolder>, number, boolean | undefined])[] = [
    ["this process", here, now, true],
    ["a process that has ended", { ...here, began: "earlier" }, now, false],
    ["this process, of the folder that this one is a copy of", { ...here, folder: "3:4" }, now, undefined],
    ["another container, whose lock of the system would be seen", container, now, false],
    ["another container, on another file", { ...container, lock: "3:4" }, now, undefined],
    ["another container, without a lock of the system", { ...container, lock: "" }, now, undefined],
    ["this machine before it was started", rebooted, beforeBoot, false],
    ["this machine, renewed since", rebooted, now, undefined],
    ["another host", elsewhere, now, undefined],
    ["another host, long ago", elsewhere, now - 2 * 3_600_000, false],
  ];
  for (const [name, holder, renewed, expected] of result) {
    assert.equal(await isHolderAlive({ holder: { ...own, ...holder }, renewed }, here), expected, name);
  }
});
