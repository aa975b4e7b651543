import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { withoutNamespaces } from "#test/support/namespaces.ts";
import { namespaceCycles } from "./namespaces.ts";

test("only one of two containers on one repo serves, and its acknowledged changes survive", {
  skip: withoutNamespaces,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-crash-"));
  try {
    const { acknowledged, refused, wrong } = await namespaceCycles({ folder, cycles: 1 });
    assert.deepEqual(wrong, []);
    assert.ok(acknowledged > 0 && refused === 2);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
