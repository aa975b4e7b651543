import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fullDisk, mountSmallDisk } from "./full_disk.ts";

test("a full disk can be read, survives a restart, and can be cleaned up", async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-full-"));
  const unmount = await mountSmallDisk(folder, 16);
  try {
    if (unmount === undefined) return context.skip("this user cannot mount a small file system");
    assert.deepEqual(await fullDisk({ folder, toLastByte: true, signal: "SIGKILL" }), []);
  } finally {
    await unmount?.();
    await rm(folder, { recursive: true, force: true });
  }
});
