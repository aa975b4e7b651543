import assert from "node:assert/strict";
import { chmod, mkdir, readdir, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createNode } from "modhost/node";
import { migrateRepo } from "#node/migration/migrate.ts";
import { keepPrivate } from "#node/storage/private_files.ts";
import { emptyFolder } from "./support.ts";

const skip = process.platform === "win32" && "no permissions of this kind";

const modeOf = async (path: string) => (await stat(path)).mode & 0o7777;

/** Returns everything in a folder that the group or others may access, with its mode. */
async function open(folder: string): Promise<string[]> {
  const found = [".", ...(await readdir(folder, { recursive: true }))];
  const modes = await Promise.all(found.map(async (name) => [name, await modeOf(join(folder, name))] as const));
  return modes.filter(([, mode]) => (mode & 0o077) !== 0).map(([name, mode]) => `${name} ${mode.toString(8)}`);
}

async function withUmask<T>(mask: number, run: () => Promise<T>): Promise<T> {
  const before = process.umask(mask);
  try {
    return await run();
  } finally {
    process.umask(before);
  }
}

test("a new repo is only accessible to its owner, even while it is open, whatever the umask allows", {
  skip,
}, async (t) => {
  const folder = await emptyFolder(t);
  const repo = join(folder, "repo");
  const copy = join(folder, "copy");
  await withUmask(0, async () => {
    const node = await createNode({ repo, offline: true });
    await node.add("of mine");
    await node.key.gen("k");
    await node.config.profiles.apply("lowpower");
    await node.config.replace(await node.config.getAll());
    const whileOpen = await open(repo);
    await node.close();
    assert.deepEqual([whileOpen, await open(repo)], [[], []]);
    assert.ok((await readdir(repo)).includes("metadata.copy"));
    (await await migrateRepo(repo, copy)) && (await migrateRepo(copy, join(folder, "back")));
  });
  assert.deepEqual(await open(join(folder, "back")), []);
  assert.equal(await modeOf(copy), 0o700);
});

test("files that an earlier version left open to all users are closed when the repo opens", { skip }, async (t) => {
  const folder = await emptyFolder(t);
  const repo = join(folder, "repo");
  await (await createNode({ repo, offline: true })).close();
  const parts = ["segments", "metadata", join("segments", "index")].map((name) => join(repo, name));
  for (const part of parts) {
    for (const name of await readdir(part)) await chmod(join(part, name), 0o644);
    await chmod(part, 0o755);
  }
  await chmod(repo, 0o755);
  await (await createNode({ repo, offline: true })).close();
  assert.deepEqual(await open(repo), [". 755"]);
});

test("closed folders, links and missing files are not changed", { skip }, async (t) => {
  const folder = await emptyFolder(t);
  const [shared, all, outside] = ["shared", "all", "outside"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const each of [shared, all]) {
    await mkdir(each);
    await writeFile(join(each, "file"), "");
    await chmod(join(each, "file"), 0o644);
  }
  await writeFile(outside, "");
  await chmod(outside, 0o644);
  await symlink(outside, join(all, "link"));
  await chmod(shared, 0o2770);
  await chmod(all, 0o2755);
  for (const each of [shared, all, join(folder, "nothing")]) await keepPrivate(each);
  assert.deepEqual([await modeOf(shared), await modeOf(join(shared, "file"))], [0o2770, 0o644]);
  assert.deepEqual([await modeOf(all), await modeOf(join(all, "file")), await modeOf(outside)], [0o2700, 0o600, 0o644]);
});
