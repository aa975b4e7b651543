import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { backupCycles } from "./backups.ts";

test("a backup of a working node contains all acknowledged changes, even if another backup is killed", async () => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-backups-"));
  try {
    const { restored, acknowledged, wrong } = await backupCycles({ folder, cycles: 1, longest: 600 });
    assert.deepEqual(wrong, []);
    assert.equal(restored, 1);
    assert.ok(acknowledged > 0);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
