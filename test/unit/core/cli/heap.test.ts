/** The settings of V8 for processes that serve. The programs of these tests measure themselves. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { folderOf } from "../module/support.ts";

const serving = new URL("../../../../core/cli/serve.ts", import.meta.url);

/** This code runs first. It makes timers of several seconds fire at once. */
const hurried = `data:text/javascript,${encodeURIComponent(`
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (run, ms) => setTimeout(run, ms >= 6_000 ? 0 : ms);
`)}`;

/** Runs the body of a service's start in a process of its own, and returns what it prints. */
async function measured(t: TestContext, body: string, ...more: readonly string[]): Promise<number> {
  const program = `
    import { setImmediate as nextTurn } from "node:timers/promises";
    import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";
    import { serve } from "${serving}";
    async function start() {
      await new Promise((resolve) => setTimeout(resolve, 10));
      ${body}
    }
    await serve({
      start: async () => console.log(await start()),
      stop: async () => {},
      ended: Promise.resolve(),
      report: (error) => console.error(error),
    });`;
  const folder = await folderOf(t, { "program.ts": program });
  const flags = ["--conditions=source", "--expose-gc", "--import", hurried, ...more];
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, join(folder, "program.ts")]);
  return Number.parseFloat(stdout);
}

describe("the heap of a server", () => {
  test("contains at most a few times as much garbage as live objects", async (t) => {
    const most = await measured(
      t,
      `const used = () => getHeapStatistics().used_heap_size;
      const alive = Array.from({ length: 200_000 }, (_, at) => ({ at, more: [at] }));
      globalThis.gc();
      const first = used();
      const fleeting: object[] = [];
      let most = first;
      for (let at = 0; at < 2_000_000; at += 1) {
        fleeting[at % 50_000] = { at, more: [at] };
        if (at % 1000 === 0) most = Math.max(most, used());
      }
      return alive.length > 0 ? most / first : 0;`,
      // The program soon outgrows this size.
      "--max-semi-space-size=2",
    );
    assert.ok(most < 3.5, `it held ${most} times as much`);
  });

  test("has a young generation of at most 32 MiB", async (t) => {
    const bytes = await measured(
      t,
      `const young = () => getHeapSpaceStatistics().find((each) => each.space_name === "new_space")!.space_size;
      let alive: object[] = [];
      const sizes: number[] = [];
      for (let turn = 0; turn < 400; turn += 1) {
        for (let at = 0; at < 10_000; at += 1) alive.push({ at, more: [at] });
        if (alive.length > 120_000) alive = [];
        sizes.push(young());
        await nextTurn();
      }
      // While it is collected it has more pages.
      return sizes.slice(200).sort((one, other) => one - other)[100];`,
    );
    assert.ok(bytes >= 16 * 2 ** 20, `it has ${bytes} bytes: the program is not what this is about`);
    assert.ok(bytes <= 36 * 2 ** 20, `it has ${bytes} bytes`);
  });
});
