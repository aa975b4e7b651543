/**
 * Tests that `npm run test:scale -- --minutes` would report a leak, and nothing else. A whole run
 * of it is `--leak`.
 */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { eventually } from "#test/support/eventually.ts";
import { grown } from "./growth.ts";
import type { Take } from "./holder.ts";
import { LEAK_METRICS, type Leak } from "./plant.ts";
import { GIVING_BACK, socketIn, type Usage, usageOf } from "./usage.ts";

const skip = process.platform === "linux" ? false : "only Linux reports memory in /proc";
const MIB = 2 ** 20;

/**
 * Memory of a host without a leak, look by look, in MB: its caches fill up, its code is compiled,
 * and its memory gets gaps.
 */
const FLAT = {
  heap: [43.2, 43.7, 44.3, 45, 45.3, 45.6, 45.7, 45.8, 45.8, 46.1],
  external: [34.5, 34.7, 34.6, 35.2, 35.2, 35.9, 35.5, 35.5, 36, 35.9],
  native: [18.7, 19, 18.9, 24, 23.4, 23.6, 25.5, 25.3, 24.5, 25.8],
};
/** The highest growth of native memory between two looks of another host in the same run. */
const STEP = { heap: 2, external: 3, native: 7.8 };

/** Adds the memory that has been leaked by then to each look. */
const looksOf = (usage: Readonly<Record<string, readonly number[]>>, leaked: Usage = {}): Usage[] =>
  (usage.heap ?? []).map((_, minute) =>
    Object.fromEntries(
      Object.entries(usage).map(([name, values]) => [
        name,
        ((values[minute] ?? 0) + (leaked[name] ?? 0) * minute) * MIB,
      ]),
    ),
  );

const grownMetrics = (looks: readonly Usage[]) => grown("host", looks).map((line) => line.split(" ")[1]);

test("a leak of 1 MiB per look is reported, and a cache that fills up is not", () => {
  assert.deepEqual(grownMetrics(looksOf(FLAT)), []);
  for (const name of Object.keys(FLAT)) assert.deepEqual(grownMetrics(looksOf(FLAT, { [name]: 1 })), [name]);
});

test("one high look is no leak, and neither is one step, wherever it occurs", () => {
  for (const name of Object.keys(FLAT) as (keyof typeof FLAT)[]) {
    const values = FLAT[name];
    for (const minute of values.keys()) {
      const high = values.with(minute, (values[minute] ?? 0) + 50);
      const stepped = values.map((each, at) => (at < minute ? each : each + STEP[name]));
      for (const looks of [high, stepped])
        assert.deepEqual(grownMetrics(looksOf({ ...FLAT, [name]: looks })), [], `${name}, look ${minute}`);
    }
  }
});

test("a leak in steps is reported", () => {
  const steps = FLAT.heap.map((value, minute) => value + 3 * Math.floor(minute / 3));
  assert.deepEqual(grownMetrics(looksOf({ ...FLAT, heap: steps })), ["heap"]);
});

test("freed memory of a process is not counted, and retained memory is", { skip }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-leaks-"));
  await mkdir(join(folder, "repo", "shared"), { recursive: true });
  const child = fork(new URL("holder.ts", import.meta.url), {
    env: { ...process.env, ...GIVING_BACK, MODHOST_DATA_PATH: folder },
    execArgv: ["--conditions=source", `--import=${new URL("report_usage.ts", import.meta.url)}`],
  });
  t.after(async () => {
    child.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  });
  await eventually("the process can be measured", () => existsSync(socketIn(folder)));
  const take = async (leak: Leak, keeps: boolean, pieces: number) => {
    const more: Take = { leak, pieces, bytes: 200_000, keeps };
    child.send(more);
    await once(child, "message");
    return await usageOf(child.pid as number, folder);
  };
  const more = (after: Usage, before: Usage, name: string) => (after[name] ?? 0) - (before[name] ?? 0);
  const first = await take("buffers", false, 1);
  await take("heap", false, 300);
  const burst = await take("buffers", false, 300);
  const back = more(burst, first, "anonymous");
  assert.ok(back < 16 * MIB, `${back} bytes of freed memory are counted`);
  // Each leak allocates 23 MiB.
  for (const [leak, name] of Object.entries(LEAK_METRICS) as [Leak, string][]) {
    const before = await take("buffers", false, 1);
    const after = await take(leak, true, 120);
    const growth = { own: more(after, before, name), anonymous: more(after, before, "anonymous") };
    // Retained memory may be allocated where memory was free.
    assert.ok(growth.own > 20 * MIB && growth.anonymous > 8 * MIB, `${leak}: ${JSON.stringify(growth)}`);
  }
});
