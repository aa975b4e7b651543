/** The watchdog of the event loop: what it writes while the loop stands still. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { folderOf } from "../module/support.ts";

const at = (path: string) => new URL(`../../../../core/${path}`, import.meta.url).href;

/** A program whose loop stands still, in the code of a module, until the watchdog has spoken. */
const program = (exits: boolean, seconds: number) => `
  import { watchLoop } from ${JSON.stringify(at("cli/watchdog.ts"))};
  import { Usage } from ${JSON.stringify(at("util/usage.ts"))};
  const end = watchLoop({ seconds: 0.5, exits: ${exits} });
  const usage = new Usage("shop");
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const outer = usage.enter();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${seconds * 1000});
  usage.leave(outer, performance.now());
  end();
`;

async function run(t: TestContext, exits: boolean, seconds: number): Promise<{ stderr: string; signal?: string }> {
  const folder = await folderOf(t, { "program.mjs": program(exits, seconds) });
  const args = ["--conditions=source", join(folder, "program.mjs")];
  return await promisify(execFile)(process.execPath, args).catch((error) => error);
}

describe("the watchdog", () => {
  test("names the module whose code holds the loop", { timeout: 30_000 }, async (t) => {
    const { stderr } = await run(t, false, 4);
    assert.match(stderr, /the event loop has stood still for \d+\.\d s, in code of the module shop/);
  });

  test("ends the process, where it is to", { timeout: 60_000 }, async (t) => {
    const { stderr, signal } = await run(t, true, 50);
    assert.match(stderr, /the process ends, as the option loop_watchdog_exit says/);
    assert.equal(signal, "SIGKILL");
  });
});
