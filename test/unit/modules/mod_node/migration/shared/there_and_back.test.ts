/** From a repo to a store that several hosts share, and back. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { type MigrationProgress, migrateFromShared, migrateRepo, migrateToShared } from "modhost/node";
import { noSharedStore } from "#test/support/engines/shared_store.ts";
import { documentIn, emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";
import { fill, objectsOf, shown, storeIn } from "./support.ts";

const skip = noSharedStore;

test("what a repo has is there on hosts of a shared store, and in a repo that is copied from there", {
  skip,
}, async (t) => {
  const folder = await emptyFolder(t);
  const [own, back] = [join(folder, "own"), join(folder, "back")];
  await fill(own);
  const before = await shown(own);
  assert.equal(before.keys.length, 1);
  const settings = await storeIn(folder);
  const told: MigrationProgress[] = [];
  const there = await migrateToShared(own, settings, { onProgress: (each) => told.push(each), verify: true });
  assert.deepEqual([there.blocks, there.keys, there.files?.toString()], [there.total, 1, before.root]);
  assert.ok(told.some(({ isChecking }) => isChecking) || told.length > 0);
  const host = { repo: join(folder, "host"), store: settings };
  assert.deepEqual(await shown(host), before);
  assert.deepEqual(await shown(own), before);

  const { keys } = await migrateFromShared(settings, back, { like: own, verify: true });
  assert.equal(keys, 1);
  assert.deepEqual(await shown(back), before);
  assert.deepEqual((await documentIn(back)).Identity, (await documentIn(own)).Identity);
  // A repo of go-ipfs comes from there as well.
  await migrateFromShared(settings, join(folder, "flat"), { kind: "flatfs" });
  assert.deepEqual(await shown(join(folder, "flat")), before);
});

test("what was brought before is not brought again, and what others have added stays", { skip }, async (t) => {
  const folder = await emptyFolder(t);
  const own = join(folder, "own");
  await fill(own);
  const settings = await storeIn(folder);
  await migrateToShared(own, settings);
  const objects = (await objectsOf(settings)).length;
  const again = await migrateToShared(own, settings);
  assert.deepEqual([again.bytes, (await objectsOf(settings)).length], [0, objects]);
  const other = join(folder, "other");
  await fill(other, { seed: 2 });
  const before = await shown({ repo: join(folder, "host"), store: settings });
  await assert.rejects(migrateToShared(other, settings), /^NodeError: nothing was copied, as both have a key/);
  assert.deepEqual(await shown({ repo: join(folder, "host"), store: settings }), before);
});

test("a repo whose blocks are one file each goes to a shared store, too", { skip }, async (t) => {
  const folder = await emptyFolder(t);
  const [own, flat] = [join(folder, "own"), join(folder, "flat")];
  await fill(own, { chunks: 3 });
  await migrateRepo(own, flat, { kind: "flatfs" });
  const settings = await storeIn(folder);
  await migrateToShared(flat, settings);
  assert.deepEqual(await shown({ repo: join(folder, "host"), store: settings }), await shown(own));
});
