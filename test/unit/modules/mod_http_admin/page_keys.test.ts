import assert from "node:assert/strict";
import { lstatSync, mkdtempDisposableSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { PageKeys } from "#modules/mod_http_admin/dashboard/keys.ts";

test("the secret of page keys is not written through a symbolic link", async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), "modhost-keys-"));
  const file = join(folder.path, "admin.key");
  const other = join(folder.path, "other");
  writeFileSync(other, "of somebody else");
  symlinkSync(other, file);
  const keys = await PageKeys.in(file);
  assert.equal(readFileSync(other, "utf8"), "of somebody else");
  const written = lstatSync(file);
  assert.deepEqual([written.isFile(), written.mode & 0o777], [true, 0o600]);
  assert.equal((await PageKeys.in(file)).of("local"), keys.of("local"));
});

test("page keys work where no file can be written", async () => {
  const keys = await PageKeys.in("/dev/null/admin.key");
  assert.match(keys.of("local"), /./);
});
