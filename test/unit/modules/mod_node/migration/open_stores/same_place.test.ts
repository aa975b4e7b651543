/** Hosts that are given what belongs to another one: its folder for the cache. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createNode } from "#node/index.ts";
import { noSharedStore, sharedStore } from "#test/support/engines/shared_store.ts";

test("a host does not begin with the cache folder of another one that runs", { skip: noSharedStore }, async (t) => {
  const { settings } = await sharedStore();
  const folder = await mkdtemp(join(tmpdir(), "modhost-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const store = { ...settings, cache_path: join(folder, "cache") };
  const open = (name: string) => createNode({ repo: join(folder, name), store, offline: true });
  const one = await open("one");
  await assert.rejects(open("other"), { code: "REPO_LOCKED", message: /cache/ });
  await one.close();
  // It is free again.
  await (await open("other")).close();
});
