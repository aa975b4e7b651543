import assert from "node:assert/strict";
import { mkdir, readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { visitSharedStore } from "modhost/node";
import { lockFolders } from "#node/storage/repo/repo.ts";
import { noSharedStore, sharedStore } from "#test/support/engines/shared_store.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";

test("a visit removes its temporary folder at the end, and those of killed visits at its start", {
  skip: noSharedStore,
}, async (t) => {
  const temporary = await emptyFolder(t);
  const { settings } = await sharedStore();
  for (const name of ["modhost-store-killed", "modhost-store-used", "other"]) {
    await mkdir(join(temporary, name));
    await writeFile(join(temporary, name, "data"), "x");
  }
  const lock = await lockFolders([join(temporary, "modhost-store-used")]);
  try {
    await mkdir(join(temporary, "modhost-store-new"));
    for (const name of ["killed", "used"]) await utimes(join(temporary, `modhost-store-${name}`), 1, 1);
    const during = await visitSharedStore(settings, () => readdir(temporary), { temporary });
    assert.equal(during.length, 4);
    assert.deepEqual((await readdir(temporary)).sort(), ["modhost-store-new", "modhost-store-used", "other"]);
  } finally {
    await lock.release();
  }
});
