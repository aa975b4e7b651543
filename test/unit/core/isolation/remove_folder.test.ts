/** The removal of folders that a hostile module has filled. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { folderOf } from "../module/support.ts";

const program = fileURLToPath(import.meta.resolve("#core/isolation/remove_folder.ts"));

/** Removes a folder in a process that may open 256 files. */
function remove(folder: string) {
  const code = `import { removeFolder } from ${JSON.stringify(program)}; await removeFolder(${JSON.stringify(folder)});`;
  const node = [process.execPath, "--conditions=source", "--input-type=module", "-e", code];
  return promisify(execFile)("sh", ["-c", 'ulimit -n 256; exec "$@"', "sh", ...node]);
}

test("folders in folders beyond the longest path and the limit of descriptors are removed", async (t) => {
  const folder = join(await folderOf(t, {}), "modhost-sandbox-x");
  const tmp = join(folder, "tmp");
  const chain = join(tmp, "chain");
  const last = `${chain}/${"d/".repeat(1800)}`;
  mkdirSync(last, { recursive: true });
  for (let count = 0; count < 2; count += 1) {
    renameSync(chain, join(tmp, "before"));
    mkdirSync(last, { recursive: true });
    renameSync(join(tmp, "before"), `${last}before`);
  }
  writeFileSync(join(folder, "http"), "");
  await remove(folder);
  assert.equal(existsSync(folder), false);
});

test("the targets of links in a removed folder stay", async (t) => {
  const outside = await folderOf(t, { "kept/file": "text", "x/tmp/file": "text" });
  symlinkSync(join(outside, "kept"), join(outside, "x/tmp/link"));
  await remove(join(outside, "x"));
  assert.equal(existsSync(join(outside, "x")), false);
  assert.equal(existsSync(join(outside, "kept/file")), true);
});
