/** Findings of the doctor in the repo of a node. */
import assert from "node:assert/strict";
import { mkdir, readFile, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import type { Installation } from "#core/cli/doctor/check.ts";
import { repoChecks } from "#modules/mod_http_api/cli/node/checks.ts";
import { writeCopy } from "#node/storage/metadata/copy_file.ts";
import { ownLease } from "#node/storage/repo/lease_holder.ts";
import { openRepo } from "#node/storage/repo/repo.ts";
import { folderOf } from "#test/unit/core/module/support.ts";

const header = { id: "a", made: "2026-01-02T03:04:05.000Z" };

/** A repo, the doctor's findings in it, and ways to break it. */
async function repoOf(t: TestContext) {
  const data = await folderOf(t, {});
  const repo = join(data, "repo");
  const opened = await openRepo(repo, { profile: "test" });
  const { metadata } = opened.stores;
  await mkdir(metadata, { recursive: true });
  await opened.close();
  async function* entries() {
    yield ["pins/a", Buffer.from("x")] as const;
  }
  const copy = () => writeCopy(`${metadata}.copy`, header, entries());
  const found = async (running?: { pid: number }, free = Number.MAX_SAFE_INTEGER) => {
    const system = { now: Date.now, space: () => ({ free }) };
    const installation = { data, config: undefined, running, system } as unknown as Installation;
    const results = await Promise.all(
      repoChecks.map(async ({ name, run }) => ({ name, all: await run(installation) })),
    );
    return results.flatMap(({ name, all }) => all.map(({ level, text }) => `${name}: ${level}: ${text}`)).join("\n");
  };
  return { repo, metadata, blocks: opened.stores.blocks, copy, found };
}

describe("the doctor finds", () => {
  test("nothing in an intact repo", async (t) => {
    const { found } = await repoOf(t);
    assert.doesNotMatch(await found(), /^(repo|repo lock|metadata):/m);
  });

  test("lost metadata, and a missing or damaged copy of it", async (t) => {
    const { metadata, copy, found } = await repoOf(t);
    await copy();
    assert.match(await found(), /^metadata: problem: .*metadata is lost/m);
    await writeFile(join(metadata, "data.mdb"), "x");
    assert.doesNotMatch(await found(), /^metadata:/m);
    const file = `${metadata}.copy`;
    await writeFile(file, (await readFile(file, "utf8")).replace("pins/a", "pins/b"));
    assert.match(await found(), /^metadata: warning: .*could not be restored.*its checksum does not fit/m);
    await writeFile(file, "");
    assert.match(await found(), /^metadata: warning: .*its end is missing/m);
  });

  test("damaged pieces that were set aside, a full disk, and a half copied repo", async (t) => {
    const { repo, metadata, blocks, found } = await repoOf(t);
    await mkdir(join(blocks, "lost+found"), { recursive: true });
    await writeFile(join(blocks, "lost+found", "00000003.car-0-7-x"), "damaged");
    assert.match(
      await found(),
      /^damaged blocks: warning: 1 damaged parts of segments \(7 B\) .*segments\/lost\+found/m,
    );
    await writeFile(join(metadata, "data.mdb"), "of some length");
    const full = await found(undefined, 5);
    assert.match(full, /^repo space: warning: Only 5 B are free at .*segments/m);
    assert.match(full, /^repo space: warning: .*metadata has 14 B, but only 5 B are free for the copy/m);
    await writeFile(join(repo, "copied-from"), "s3://bucket/content");
    assert.match(await found(), /^repo: problem: The repo .* is an incomplete copy of s3:\/\/bucket\/content/m);
  });

  test("an abandoned lease and a lease of another process, but not the lease of the server itself", async (t) => {
    const { repo, found } = await repoOf(t);
    const lease = join(repo, "repo.lease");
    const own = await ownLease(repo, "");
    await writeFile(lease, JSON.stringify(own));
    assert.match(await found(), /^repo lock: warning: .* is locked by process \d+, which is not a server/m);
    assert.doesNotMatch(await found({ pid: process.pid }), /^repo lock/m);
    assert.match(await found({ pid: Number(`${process.pid}1`) }), /^repo lock/m, "the number is compared whole");
    await writeFile(lease, JSON.stringify({ ...own, began: "another time" }));
    assert.match(
      await found(),
      /^repo lock: warning: .* belongs to process \d+, which has ended without releasing it/m,
    );
    await writeFile(lease, JSON.stringify({ ...own, host: "elsewhere", machine: "m", boot: "b", space: "s" }));
    assert.match(await found(), /is locked by process \d+ of elsewhere/);
    const before = Date.now() / 1000 - 600;
    await utimes(lease, before, before);
    assert.match(await found(), /process \d+ of elsewhere, another host, which has not renewed it since/);
  });

  test("mount folders on which nothing can be mounted", async (t) => {
    const { repo, found } = await repoOf(t);
    const config = JSON.parse(await readFile(join(repo, "config"), "utf8"));
    await writeFile(
      join(repo, "config"),
      JSON.stringify({ ...config, Mounts: { IPFS: "/no/such", IPNS: "/no/other" } }),
    );
    const text = await found();
    // Where this machine can mount, there is nothing to find.
    assert.ok(
      text === "" || /^mounts: warning: Nothing can be mounted on \/no\/such and \/no\/other: fuse: /m.test(text),
      text,
    );
  });
});
