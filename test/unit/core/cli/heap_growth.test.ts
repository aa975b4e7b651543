/** The heap of a server stays near to what is alive in it. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { folderOf } from "../module/support.ts";

const file = new URL("../../../../core/cli/heap_growth.ts", import.meta.url).href;

/** Prints how many times as much as is alive the heap holds at most, while what is made lives for a moment. */
const program = `
  import { getHeapStatistics } from "node:v8";
  import { boundHeapGrowth } from ${JSON.stringify(file)};
  boundHeapGrowth();
  const used = () => getHeapStatistics().used_heap_size;
  const alive = Array.from({ length: 200_000 }, (_, at) => ({ at, more: [at] }));
  gc();
  const first = used();
  const fleeting = [];
  let most = first;
  for (let at = 0; at < 2_000_000; at += 1) {
    fleeting[at % 50_000] = { at, more: [at] };
    if (at % 1000 === 0) most = Math.max(most, used());
  }
  console.log(most / first, alive.length);
`;

describe("the heap of a server", () => {
  test("it holds garbage of a few times what is alive at most", async (t) => {
    const folder = await folderOf(t, { "program.mjs": program });
    // What lives for a moment gets past a young generation of this size.
    const args = ["--conditions=source", "--expose-gc", "--max-semi-space-size=2", join(folder, "program.mjs")];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    assert.ok(Number.parseFloat(stdout) < 3.5, `it held ${stdout.split(" ")[0]} times as much`);
  });
});
