/** What the launcher asks of V8 for a server: shown by a program in the place of ours. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { folderOf } from "../module/support.ts";

const launcher = new URL("../../../../core/cli/launch.mjs", import.meta.url);

/** Code that runs before the launcher, for which what is to happen seconds later happens at once. */
const hurried = `data:text/javascript,${encodeURIComponent(`
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (run, ms) => setTimeout(run, ms >= 6_000 ? 0 : ms);
`)}`;

/** What a program prints that is started as the source of ours. */
async function printed(t: TestContext, program: string, ...more: readonly string[]): Promise<number> {
  const folder = await folderOf(t, { "core/cli/main.ts": program });
  await copyFile(launcher, join(folder, "core/cli/launch.mjs"));
  const flags = ["--conditions=source", "--expose-gc", "--import", hurried, ...more];
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...flags,
    join(folder, "core/cli/launch.mjs"),
    "run",
  ]);
  return Number.parseFloat(stdout);
}

describe("the heap of a server", () => {
  test("holds garbage of a few times what is alive at most", async (t) => {
    const most = await printed(
      t,
      `import { getHeapStatistics } from "node:v8";
      const used = () => getHeapStatistics().used_heap_size;
      await new Promise((resolve) => setTimeout(resolve, 10));
      const alive = Array.from({ length: 200_000 }, (_, at) => ({ at, more: [at] }));
      globalThis.gc();
      const first = used();
      const fleeting: object[] = [];
      let most = first;
      for (let at = 0; at < 2_000_000; at += 1) {
        fleeting[at % 50_000] = { at, more: [at] };
        if (at % 1000 === 0) most = Math.max(most, used());
      }
      console.log(most / first, alive.length);`,
      // One that the program soon outgrows.
      "--max-semi-space-size=2",
    );
    assert.ok(most < 3.5, `it held ${most} times as much`);
  });

  test("has a young generation of 32 MiB at most", async (t) => {
    const bytes = await printed(
      t,
      `import { setImmediate as nextTurn } from "node:timers/promises";
      import { getHeapSpaceStatistics } from "node:v8";
      const young = () => getHeapSpaceStatistics().find((each) => each.space_name === "new_space")!.space_size;
      await new Promise((resolve) => setTimeout(resolve, 10));
      let alive: object[] = [];
      const sizes: number[] = [];
      for (let turn = 0; turn < 400; turn += 1) {
        for (let at = 0; at < 10_000; at += 1) alive.push({ at, more: [at] });
        if (alive.length > 120_000) alive = [];
        sizes.push(young());
        await nextTurn();
      }
      // While it is collected it has more pages.
      console.log(sizes.slice(200).sort((one, other) => one - other)[100]);`,
    );
    assert.ok(bytes >= 16 * 2 ** 20, `it has ${bytes} bytes: the program is not what this is about`);
    assert.ok(bytes <= 36 * 2 ** 20, `it has ${bytes} bytes`);
  });
});
