import assert from "node:assert/strict";
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { writeFileAtomic } from "#core/util/write_file_atomic.ts";

describe("a file that is written as a whole", () => {
  let folder: string;
  let path: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "write-file-atomic-"));
    path = join(folder, "kept");
  });
  afterEach(() => rm(folder, { recursive: true }));

  test("has the new content, its mode, and nothing beside it", async () => {
    await writeFile(path, "former and longer", { mode: 0o644 });
    await writeFileAtomic(path, "new", 0o600);
    assert.equal(await readFile(path, "utf8"), "new");
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.deepEqual(await readdir(folder), ["kept"]);
  });

  test("takes the place of a link, and leaves alone what that led to", async () => {
    const other = join(folder, "other");
    await writeFile(other, "of somebody else");
    await symlink(other, path);
    await writeFileAtomic(path, "new", 0o600);
    assert.ok((await lstat(path)).isFile());
    assert.equal(await readFile(other, "utf8"), "of somebody else");
  });

  test("goes through no link at its draft, nor into a draft that others may read", async () => {
    const other = join(folder, "other");
    const draft = `${path}.${process.pid}.new`;
    await writeFile(other, "of somebody else");
    await symlink(other, draft);
    await writeFileAtomic(path, "new", 0o600);
    assert.equal(await readFile(other, "utf8"), "of somebody else");
    await writeFile(draft, "left behind", { mode: 0o644 });
    await writeFileAtomic(path, "newer", 0o600);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  });

  test("leaves no draft where it cannot be put in place", async () => {
    await mkdir(path);
    await assert.rejects(writeFileAtomic(path, "new", 0o600));
    assert.deepEqual(await readdir(folder), ["kept"]);
  });
});
