import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { grow, type Step } from "./growth.ts";

const skip = process.platform === "linux" ? false : "memory is told by /proc";
const mebibyte = 2 ** 20;

async function grown(entries: number): Promise<readonly Step[]> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-growth-"));
  try {
    // Left to itself the heap grows to some multiple of what is alive before it is searched, and
    // its young generation to a bound.
    return await grow({ folder, entries, nodeFlags: ["--heap-growing-percent=20", "--max-semi-space-size=2"] });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The long form, with a million: `npm run test:growth`. */
test("directories and pins are added and listed whole, in memory that does not follow their number", {
  skip,
}, async () => {
  const few = await grown(1000);
  const many = await grown(4000);
  const names = (steps: readonly Step[]) => steps.map(({ name }) => name);
  assert.deepEqual(names(many), names(few));
  const most = (steps: readonly Step[]) => Math.max(...steps.map(({ own }) => own));
  // 3,000 entries more: less than 10 KiB for each, most of which is how far two heaps differ.
  assert.ok(most(many) - most(few) < 30 * mebibyte, `${most(few) / mebibyte} MiB, then ${most(many) / mebibyte} MiB`);
});
