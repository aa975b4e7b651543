import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { crashCycles } from "./crash.ts";

test("acknowledged changes survive kill -9 under mixed work", async () => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-crash-"));
  try {
    const { acknowledged, wrong } = await crashCycles({ folder, cycles: 2, longest: 700 });
    assert.deepEqual(wrong, []);
    assert.ok(acknowledged > 0);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
