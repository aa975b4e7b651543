/**
 * Whether `npm run test:scale -- --minutes` would tell of a leak, and of nothing else; a whole run
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
import { type Figures, GIVING_BACK, heldBy, socketIn } from "./held.ts";
import type { Take } from "./holder.ts";
import { FIGURES, type Leak } from "./plant.ts";

const skip = process.platform === "linux" ? false : "memory is told by /proc";
const MIB = 2 ** 20;

/**
 * Of a host that leaks nothing, look by look, in MB: its caches fill up, its code is compiled, and
 * its memory gets gaps.
 */
const FLAT = {
  heap: [43.2, 43.7, 44.3, 45, 45.3, 45.6, 45.7, 45.8, 45.8, 46.1],
  external: [34.5, 34.7, 34.6, 35.2, 35.2, 35.9, 35.5, 35.5, 36, 35.9],
  native: [18.7, 19, 18.9, 24, 23.4, 23.6, 25.5, 25.3, 24.5, 25.8],
};
/**
 * Of another host of the same run: the most that native code had more from one look to the next.
 */
const STEP = { heap: 2, external: 3, native: 7.8 };

/** Each look with what more has been leaked by then. */
const looksOf = (figures: Readonly<Record<string, readonly number[]>>, leaked: Figures = {}): Figures[] =>
  (figures.heap ?? []).map((_, minute) =>
    Object.fromEntries(
      Object.entries(figures).map(([name, values]) => [
        name,
        ((values[minute] ?? 0) + (leaked[name] ?? 0) * minute) * MIB,
      ]),
    ),
  );

const told = (looks: readonly Figures[]) => grown("host", looks).map((line) => line.split(" ")[1]);

test("a leak of 1 MiB from look to look is told of, and no cache that fills up", () => {
  assert.deepEqual(told(looksOf(FLAT)), []);
  for (const name of Object.keys(FLAT)) assert.deepEqual(told(looksOf(FLAT, { [name]: 1 })), [name]);
});

test("one look that is high is no leak, nor is one step, wherever it is", () => {
  for (const name of Object.keys(FLAT) as (keyof typeof FLAT)[]) {
    const values = FLAT[name];
    for (const minute of values.keys()) {
      const high = values.with(minute, (values[minute] ?? 0) + 50);
      const stepped = values.map((each, at) => (at < minute ? each : each + STEP[name]));
      for (const looks of [high, stepped])
        assert.deepEqual(told(looksOf({ ...FLAT, [name]: looks })), [], `${name}, look ${minute}`);
    }
  }
});

test("a leak in steps is told of", () => {
  const steps = FLAT.heap.map((value, minute) => value + 3 * Math.floor(minute / 3));
  assert.deepEqual(told(looksOf({ ...FLAT, heap: steps })), ["heap"]);
});

test("what a process has given back is not counted, and what it keeps is", { skip }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-leaks-"));
  await mkdir(join(folder, "repo", "shared"), { recursive: true });
  const child = fork(new URL("holder.ts", import.meta.url), {
    env: { ...process.env, ...GIVING_BACK, MODHOST_DATA_PATH: folder },
    execArgv: ["--conditions=source", `--import=${new URL("tell.ts", import.meta.url)}`],
  });
  t.after(async () => {
    child.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  });
  await eventually("it can be asked", () => existsSync(socketIn(folder)));
  const take = async (leak: Leak, keeps: boolean, pieces: number) => {
    const more: Take = { leak, pieces, bytes: 200_000, keeps };
    child.send(more);
    await once(child, "message");
    return await heldBy(child.pid as number, folder);
  };
  const more = (after: Figures, before: Figures, name: string) => (after[name] ?? 0) - (before[name] ?? 0);
  const first = await take("buffers", false, 1);
  await take("heap", false, 300);
  const burst = await take("buffers", false, 300);
  const back = more(burst, first, "anonymous");
  assert.ok(back < 16 * MIB, `${back} bytes of what was given back are counted`);
  // 23 MiB each.
  for (const [leak, name] of Object.entries(FIGURES) as [Leak, string][]) {
    const before = await take("buffers", false, 1);
    const after = await take(leak, true, 120);
    const told = { own: more(after, before, name), anonymous: more(after, before, "anonymous") };
    // What was kept may come to lie in what was free.
    assert.ok(told.own > 20 * MIB && told.anonymous > 8 * MIB, `${leak}: ${JSON.stringify(told)}`);
  }
});
