/** Migrates a repo of Kubo to a shared store. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { migrateToShared } from "modhost/node";
import { migrateRepo } from "#node/migration/migrate.ts";
import { noSharedStore } from "#test/support/engines/shared_store.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";
import { makeKuboRepo } from "../from_go_ipfs/kubo_repo.ts";
import { fileAt, opened, pinsOf, rootOf } from "../from_go_ipfs/support.ts";
import { storeIn } from "./support.ts";

test("a repo of Kubo is migrated to a shared store in two steps, as the error of a single step says", {
  skip: noSharedStore,
}, async (t) => {
  const folder = await emptyFolder(t);
  const kubo = join(folder, "kubo");
  const own = join(folder, "own");
  await makeKuboRepo(kubo);
  const settings = await storeIn(folder);
  await assert.rejects(
    migrateToShared(kubo, settings),
    /copy it to a folder first, with `modhost node migrate FROM TO`/,
  );
  await migrateRepo(kubo, own, { kind: "segments" });
  const { blocks, total } = await migrateToShared(own, settings, { verify: true });
  assert.equal(blocks, total);
  const pinned = (repo: Parameters<typeof opened>[0]) =>
    opened(repo, async (node) => ({
      ...(await pinsOf(node)),
      note: await fileAt(node, `${await rootOf(node)}/notes/note`),
    }));
  const there = await pinned({ repo: join(folder, "host"), store: settings });
  assert.equal(there.recursive.length, 1);
  assert.deepEqual(there, await pinned(own));
});
