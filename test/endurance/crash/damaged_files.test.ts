import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { damagedFiles } from "./damaged_files.ts";

test("damage anywhere in the files of the block store costs only the damaged blocks", async () => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-damaged-"));
  try {
    assert.deepEqual(await damagedFiles({ folder, rounds: 6 }), []);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
