import assert from "node:assert/strict";
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { writeFileAtomic } from "#core/util/write_file_atomic.ts";

describe("a file that is written atomically", () => {
  let folder: string;
  let path: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "write-file-atomic-"));
    path = join(folder, "kept");
  });
  afterEach(() => rm(folder, { recursive: true }));

  test("has the new content and its mode, and no file is left next to it", async () => {
    await writeFile(path, "former and longer", { mode: 0o644 });
    await writeFileAtomic(path, "new", 0o600);
    assert.equal(await readFile(path, "utf8"), "new");
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.deepEqual(await readdir(folder), ["kept"]);
  });

  test("replaces a link, and not the target of the link", async () => {
    const other = join(folder, "other");
    await writeFile(other, "of somebody else");
    await symlink(other, path);
    await writeFileAtomic(path, "new", 0o600);
    assert.ok((await lstat(path)).isFile());
    assert.equal(await readFile(other, "utf8"), "of somebody else");
  });

  test("is not written through a link at its temporary path, nor into a temporary file that others may read", async () => {
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

  test("leaves no temporary file if it cannot be renamed", async () => {
    await mkdir(path);
    await assert.rejects(writeFileAtomic(path, "new", 0o600));
    assert.deepEqual(await readdir(folder), ["kept"]);
  });
});
