/** Migrates a repo to a shared store and back. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { type MigrationProgress, migrateFromShared, migrateToShared } from "modhost/node";
import { treesOf } from "#node/content/mfs/key_trees.ts";
import type { NodeOptions } from "#node/node/low_level_node.ts";
import { noSharedStore } from "#test/support/engines/shared_store.ts";
import { opened } from "#test/unit/modules/mod_node/migration/from_go_ipfs/support.ts";
import { documentIn, emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";
import { fill, objectsOf, shown, storeIn } from "./support.ts";

test("content of a repo is migrated to a shared store, and from there to repos of either kind", {
  skip: noSharedStore,
}, async (t) => {
  const folder = await emptyFolder(t);
  const own = join(folder, "own");
  const back = join(folder, "back");
  const flat = join(folder, "flat");
  await fill(own);
  const before = await shown(own);
  const { PeerID: peer } = (await documentIn(own)).Identity as { PeerID: string };
  // Simulates a write through a mount.
  await opened(own, ({ metadata }) =>
    treesOf(metadata).transaction((writer) => writer.put("KEY/files/root", new Uint8Array([1]))),
  );
  const mounted = (repo: NodeOptions | string, host?: string) =>
    opened(repo, ({ metadata }) => treesOf(metadata, host).get("KEY/files/root"));
  assert.equal(before.keys.length, 1);
  const settings = await storeIn(folder);
  const reports: MigrationProgress[] = [];
  const there = await migrateToShared(own, settings, { onProgress: (each) => reports.push(each), verify: true });
  assert.deepEqual([there.blocks, there.keys, there.files?.toString()], [there.total, 1, before.root]);
  assert.deepEqual(reports[0], { blocks: 0, bytes: 0 });
  const host = { repo: join(folder, "host"), store: settings };
  assert.deepEqual(await shown(host), before);
  assert.ok(await mounted(host, peer));

  await migrateFromShared(settings, flat, { kind: "flatfs" });
  assert.deepEqual(await shown(flat), before);
  assert.equal(await mounted(flat), undefined);
  const objects = await objectsOf(settings);
  // Migrates the same content again, from a repo of go-ipfs.
  const again = await migrateToShared(flat, settings);
  assert.deepEqual([again.bytes, await objectsOf(settings)], [0, objects]);

  const { keys } = await migrateFromShared(settings, back, { like: own, verify: true });
  assert.equal(keys, 1);
  assert.deepEqual(await shown(back), before);
  assert.ok(await mounted(back));
  assert.deepEqual((await documentIn(back)).Identity, (await documentIn(own)).Identity);
});
