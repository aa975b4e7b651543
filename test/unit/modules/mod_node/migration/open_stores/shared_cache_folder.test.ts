/** Starts a host with the cache folder of another host. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createNode } from "#node/index.ts";
import { noSharedStore, sharedStore } from "#test/support/engines/shared_store.ts";

test("a host refuses to start with the cache folder of a running host", { skip: noSharedStore }, async (t) => {
  const { settings } = await sharedStore();
  const folder = await mkdtemp(join(tmpdir(), "modhost-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const store = { ...settings, cache_path: join(folder, "cache") };
  const open = (name: string) => createNode({ repo: join(folder, name), store, offline: true });
  const one = await open("one");
  await assert.rejects(open("other"), { code: "REPO_LOCKED", message: /cache/ });
  await one.close();
  // The folder is free again.
  await (await open("other")).close();
});
