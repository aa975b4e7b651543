/** The space that a module takes on disk, however it hides its files. */
import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { diskUse } from "#core/isolation/limits/disk_usage.ts";
import { folderOf } from "../module/support.ts";

const MEBIBYTE = 2 ** 20;
const NOBODY = 65_534;

test("files count in a folder that a module with the user of the server has made unlistable", async (t) => {
  const folder = await folderOf(t, {});
  const hidden = join(folder, "hidden");
  mkdirSync(hidden);
  writeFileSync(join(hidden, "file"), Buffer.alloc(MEBIBYTE, 1));
  chmodSync(hidden, 0o300);
  if (process.getuid?.() === 0) {
    // Root may list every folder.
    for (const each of [folder, hidden]) chownSync(each, NOBODY, NOBODY);
    process.seteuid?.(NOBODY);
    t.after(() => process.seteuid?.(0));
  }
  assert.ok((await diskUse([folder], Number.POSITIVE_INFINITY)) > MEBIBYTE);
});
