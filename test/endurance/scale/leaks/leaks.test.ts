/** Whether `npm run test:scale -- --minutes` would tell of a leak, and of nothing else; a whole run of it is `--leak`. */
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
import type { Leak } from "./plant.ts";

const skip = process.platform === "linux" ? false : "memory is told by /proc";
const MIB = 2 ** 20;

/** Of a host that leaks nothing, look by look, in MB: its caches fill up, its code is compiled, and its memory gets gaps. */
const FLAT = {
  heap: [44.1, 44.2, 45.1, 45.2, 45.4, 45.4, 45.8, 45.9, 46, 46],
  external: [38, 40.3, 41.5, 41.5, 41.7, 42.2, 42.8, 44.7, 44.7, 44.8],
  anonymous: [116.2, 118.8, 120.7, 121.1, 121.3, 121.5, 122.1, 128.8, 131.6, 131.4],
};

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
  assert.ok(told(looksOf(FLAT, { heap: 1, anonymous: 1 })).includes("heap"));
  assert.ok(told(looksOf(FLAT, { external: 1, anonymous: 1 })).includes("external"));
  // Of native code, which has no figure of its own, one of 3 MiB.
  assert.deepEqual(told(looksOf(FLAT, { anonymous: 3 })), ["anonymous"]);
});

test("one look that is high is no leak, nor is one step, wherever it is", () => {
  // Of another host of the same run.
  const still = [130.1, 130.2, 143.7, 143.4, 143.9, 144.1, 145.3, 145.7, 145.8, 145.9];
  for (const [minute, value] of still.entries()) {
    const high = still.with(minute, value + 50);
    const stepped = still.map((each, at) => (at < minute ? each : each + 12));
    for (const anonymous of [high, stepped])
      assert.deepEqual(told(looksOf({ ...FLAT, anonymous })), [], `look ${minute}`);
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
  for (const [leak, name] of [
    ["heap", "heap"],
    ["buffers", "external"],
  ] as const) {
    const before = await take("buffers", false, 1);
    const after = await take(leak, true, 120);
    const told = { own: more(after, before, name), anonymous: more(after, before, "anonymous") };
    // What was kept may come to lie in what was free.
    assert.ok(told.own > 20 * MIB && told.anonymous > 8 * MIB, `${leak}: ${JSON.stringify(told)}`);
  }
});
