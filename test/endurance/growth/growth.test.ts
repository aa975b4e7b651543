import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type GrowthStep, grow } from "./growth.ts";

const skip = process.platform === "linux" ? false : "only Linux reports memory in /proc";
const mebibyte = 2 ** 20;

async function grown(entries: number): Promise<readonly GrowthStep[]> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-growth-"));
  try {
    // By default, the heap grows to a multiple of the live data before it is collected, and its
    // young generation to a limit.
    return await grow({ folder, entries, nodeFlags: ["--heap-growing-percent=20", "--max-semi-space-size=2"] });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The long form, with a million: `npm run test:growth`. */
test("directories and pins are added and listed completely in memory that does not grow with their number", {
  skip,
}, async () => {
  const few = await grown(1000);
  const many = await grown(4000);
  const names = (steps: readonly GrowthStep[]) => steps.map(({ name }) => name);
  assert.deepEqual(names(many), names(few));
  const most = (steps: readonly GrowthStep[]) => Math.max(...steps.map(({ own }) => own));
  // With 3,000 more entries: less than 10 KiB for each, most of which is the difference between two
  // heaps.
  assert.ok(most(many) - most(few) < 30 * mebibyte, `${most(few) / mebibyte} MiB, then ${most(many) / mebibyte} MiB`);
});
