import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { noSharedStore, sharedStore } from "#test/support/engines/shared_store.ts";
import { scaleCycles } from "./scale.ts";

test("hosts of one store lose no acknowledged change when one after the other is killed", {
  skip: noSharedStore,
}, async (t) => {
  const { settings } = await sharedStore();
  const folder = await mkdtemp(join(tmpdir(), "modhost-scale-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const seed = Math.floor(Math.random() * 2 ** 31);
  const { acknowledged, kills, wrong } = await scaleCycles({
    folder,
    store: settings,
    seed,
    cycles: 2,
    calls: 40,
    collecting: false,
  });
  assert.deepEqual(wrong, [], `seed ${seed}`);
  assert.equal(kills, 2);
  assert.ok(acknowledged > 0);
});
