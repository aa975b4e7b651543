/** Findings of `modhost doctor` about files of users. */
import assert from "node:assert/strict";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { Installation } from "#core/cli/index.ts";
import { configFrom } from "#core/index.ts";
import { checks } from "#modules/mod_http_guard/cli/doctor.ts";
import { folderOf } from "#test/unit/core/module/support.ts";

test("a file of users that others can read causes one warning, whichever hosts use it", async (t) => {
  const folder = await folderOf(t, {});
  const file = join(folder, "users.txt");
  await writeFile(file, "", { mode: 0o640 });
  const config = configFrom(
    { http_guard_users_file: file, hosts: { "a.test": { http_guard_users_file: file } } },
    folder,
  );
  const found = () => checks[0]?.run({ config } as Installation);
  assert.deepEqual(await found(), []);
  await chmod(file, 0o644);
  assert.deepEqual(await found(), [
    { level: "warning", text: `Other users may use ${file}`, remedy: `chmod o= ${file}` },
  ]);
});
