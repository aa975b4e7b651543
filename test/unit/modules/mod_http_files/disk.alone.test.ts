import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rename, rm, statfs, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { Folders, threads } from "#modules/mod_http_files/disk.ts";
import { eventually } from "#test/support/eventually.ts";
import { folder, modified, serve, server, www } from "./served.ts";

const own = await mkdtemp(join(tmpdir(), "modhost-disk-"));
after(() => rm(own, { recursive: true }));

const isDirect = (folders: Folders, path: string) => folders.diskOf(path).read !== undefined;
/** Otherwise all access goes through threads, which these tests then show. */
const isLocal = process.platform === "linux" && [0xef53, 0x01021994, 0x794c7630].includes((await statfs(own)).type);

describe("the access to a folder", {
  skip: !isLocal && "the folder for temporary files is on no disk that is known",
}, () => {
  test("goes through threads until the folder is known to be on a local disk, and is synchronous then", async () => {
    const folders = new Folders();
    assert.equal(folders.diskOf(own), threads);
    await eventually("it is known", () => isDirect(folders, own));
  });

  test("always goes through threads on any other file system", async () => {
    const folders = new Folders();
    assert.equal(isDirect(folders, "/proc/self"), false);
    assert.equal(isDirect(folders, own), false);
    // This folder was accessed later, so the first one is known by now.
    await eventually("the other is known", () => isDirect(folders, own));
    assert.equal(isDirect(folders, "/proc/self"), false);
  });

  test("is found out once a missing folder is created", async () => {
    const folders = new Folders();
    const later = join(own, "later");
    assert.equal(isDirect(folders, later), false);
    await mkdir(later);
    await eventually("it is known", () => isDirect(folders, later));
  });

  test("goes through threads for a while if it is slow", async () => {
    let now = 0;
    let step = 0;
    const folders = new Folders(() => (now += step));
    await eventually("it is known", () => isDirect(folders, own));
    const ask = () => {
      for (let at = 0; at < 100; at += 1) folders.diskOf(own).lstat(own);
    };
    ask();
    assert.equal(isDirect(folders, own), true);
    step = 5;
    ask();
    assert.equal(isDirect(folders, own), false);
    step = 0;
    now += 1000;
    assert.equal(isDirect(folders, own), true);
  });

  test("returns no bytes of a file that has changed", async () => {
    const folders = new Folders();
    await eventually("it is known", () => isDirect(folders, own));
    const disk = folders.diskOf(own);
    const path = join(own, "a.txt");
    await writeFile(path, "one");
    const stats = await disk.lstat(path);
    assert.ok(stats !== undefined);
    assert.equal(disk.read?.(path, stats)?.toString(), "one");
    await writeFile(`${path}.new`, "two");
    await utimes(`${path}.new`, stats.atime, stats.mtime);
    await rename(`${path}.new`, path);
    assert.equal(disk.read?.(path, stats), undefined);
    await rm(path);
    await symlink("/etc/passwd", path);
    assert.throws(() => disk.read?.(path, stats), { code: "ELOOP" });
  });
});

describe("the next request sees a change", () => {
  const changing = join(www, "changing");
  const path = join(changing, "deep", "page.txt");
  const status = async (name = "page.txt") => (await server.fetch(`/changed/${name}`)).status;
  const text = async (headers = {}) => (await server.fetch("/changed/page.txt", headers)).text;
  const put = async (content: string) => {
    await rm(changing, { recursive: true, force: true });
    await mkdir(join(changing, "deep"), { recursive: true });
    await writeFile(path, content);
    // The file has the same length and age as before: only its content differs.
    await utimes(path, modified, modified);
    // By now the folder is accessed synchronously, if that is possible.
    for (let at = 0; at < 3; at += 1) assert.equal(await text(), content);
  };
  server.module("http_changed").provides("http", {
    route: {
      "GET /*": (event, name) => serve(changing)(event, `deep/${name}`),
    },
  });

  test("in its content, its name and its precompressed form", async () => {
    await put("first");
    await writeFile(path, "other");
    assert.equal(await text(), "other");
    await rename(path, `${path}.old`);
    assert.equal(await status(), 404);
    assert.equal(await status("page.txt.old"), 200);
    await writeFile(path, "again");
    await writeFile(`${path}.gz`, "packed");
    assert.equal(await text({ "accept-encoding": "gzip" }), "packed");
    await rm(`${path}.gz`);
    assert.equal(await text({ "accept-encoding": "gzip" }), "again");
  });

  test("from a file to a link that leads out, or to a pipe", async () => {
    await put("inside");
    await rm(path);
    await symlink(join(folder, "outside.txt"), path);
    assert.equal(await status(), 404);
    await rm(path);
    execFileSync("mkfifo", [path]);
    assert.equal(await status(), 403);
  });

  test("from a folder on the path to a link that leads out", async () => {
    await put("inside");
    await mkdir(join(folder, "elsewhere"));
    await rename(join(changing, "deep"), join(folder, "elsewhere", "deep"));
    await symlink(join(folder, "elsewhere", "deep"), join(changing, "deep"));
    assert.equal(await status(), 404);
  });
});
