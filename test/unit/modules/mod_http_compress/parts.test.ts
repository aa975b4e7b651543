/** The jobs and the cache of compression. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { FileCache, type FileState } from "#modules/mod_http_compress/file_cache.ts";
import { Jobs } from "#modules/mod_http_compress/jobs.ts";
import { folderOf } from "#test/unit/core/module/support.ts";

test("only a number of jobs runs at once: a caller that cannot wait gets undefined at once, and the others run in order", async () => {
  const jobs = new Jobs(2);
  const ends = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
  const begun: number[] = [];
  const job = (at: number) => async () => {
    begun.push(at);
    await ends[at]?.promise;
    if (at === 1) throw new Error("it failed");
  };
  const first = jobs.try(job(0));
  const second = jobs.try(job(1));
  assert.equal(jobs.try(job(9)), undefined);
  const waiting = [jobs.wait(job(2)), jobs.wait(job(3))];
  assert.deepEqual(begun, [0, 1]);
  ends[1]?.resolve();
  await assert.rejects(second as Promise<void>, /it failed/);
  assert.equal(jobs.try(job(9)), undefined, "the slot is for the waiting job");
  for (const { resolve } of ends) resolve();
  await Promise.all([first, ...waiting]);
  assert.deepEqual(begun, [0, 1, 2, 3]);
  assert.notEqual(
    jobs.try(async () => undefined),
    undefined,
  );
});

test("the cache keeps the files that were used last, up to its size, and none that changed while it was read", async (t) => {
  const folder = await folderOf(t, {});
  const file = async (name: string): Promise<FileState> => {
    const path = join(folder, name);
    await writeFile(path, "a".repeat(10_000));
    const { size, mtimeMs, ino } = await stat(path);
    return { path, size, mtimeMs, ino };
  };
  const cache = new FileCache(10_000);
  const jobs = new Jobs(1);
  const pack = async () => randomBytes(4000);
  const a = await file("a");
  const b = await file("b");
  const c = await file("c");
  for (const each of [a, b]) await cache.make(each, "br", pack, jobs);
  assert.ok(cache.find(a, "br"));
  await cache.make(c, "br", pack, jobs);
  const known = () => [a, b, c].map((each) => cache.find(each, "br") !== undefined);
  assert.deepEqual(known(), [true, false, true]);
  assert.equal(cache.find(a, "gzip"), undefined);
  assert.ok(cache.used <= 10_000);
  const one = cache.make(b, "br", pack, jobs);
  assert.equal(cache.make(b, "br", pack, jobs), one, "requested twice, compressed once");
  assert.equal(cache.make(a, "gzip", pack, jobs), undefined, "no slot for another job");
  await one;
  const large = await cache.make(a, "gzip", async () => randomBytes(20_000), jobs);
  assert.deepEqual(large, { bytes: undefined }, "a file that does not get smaller is remembered");
  assert.equal(await cache.make({ ...a, size: 5 }, "br", pack, jobs), undefined);
  cache.max = 0;
  assert.equal(cache.used, 0);
});
