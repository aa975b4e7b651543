/** The watchdog of the event loop: what it writes while the loop is blocked. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { folderOf } from "../module/support.ts";

const at = (path: string) => new URL(`../../../../core/${path}`, import.meta.url).href;

/** A program whose loop is blocked, by code of a module, until the watchdog has written a line. */
const program = (exits: boolean, hold: string) => `
  import { watchLoop } from ${JSON.stringify(at("cli/watchdog.ts"))};
  import { Usage } from ${JSON.stringify(at("util/usage.ts"))};
  const end = watchLoop({ seconds: 0.5, exits: ${exits} });
  const usage = new Usage("shop");
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const outer = usage.enter();
  ${hold}
  usage.leave(outer, performance.now());
  end();
`;

/** Blocks in a system call. */
const waits = (seconds: number) => `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${seconds * 1000});`;

async function run(t: TestContext, exits: boolean, hold: string): Promise<{ stderr: string; signal?: string }> {
  const folder = await folderOf(t, { "program.mjs": program(exits, hold) });
  const args = ["--conditions=source", join(folder, "program.mjs")];
  return await promisify(execFile)(process.execPath, args).catch((error) => error);
}

/** Prints which comes first: the start of the thread, or the first turn of the loop. */
const turns = (seconds: number) => `
  import { watchLoop } from ${JSON.stringify(at("cli/watchdog.ts"))};
  process.on("worker", () => console.error("a thread"));
  const end = watchLoop({ seconds: ${seconds}, exits: false });
  setTimeout(() => (console.error("the loop has turned"), end()), 500);
`;

describe("the watchdog", () => {
  test("starts its thread with the first beat, so that a server responds earlier", { timeout: 300_000 }, async (t) => {
    for (const [seconds, expected] of [
      [1000, "the loop has turned\n"],
      [0.5, "a thread\nthe loop has turned\n"],
    ] as const) {
      const folder = await folderOf(t, { "program.mjs": turns(seconds) });
      const args = ["--conditions=source", join(folder, "program.mjs")];
      assert.equal((await promisify(execFile)(process.execPath, args)).stderr, expected);
    }
  });

  test("names the module whose code blocks the loop", { timeout: 300_000 }, async (t) => {
    const { stderr } = await run(t, false, waits(4));
    assert.match(stderr, /the event loop has been blocked for \d+\.\d s, in code of the module shop/);
  });

  test("prints the stack of the blocked loop, and the code continues", { timeout: 300_000 }, async (t) => {
    const hold =
      "const cell = new Int32Array(new SharedArrayBuffer(4)); function count() { const end = Date.now() + 8000; while (Date.now() < end) Atomics.wait(cell, 0, 0, 5); }\ncount(); console.error('went on');";
    const { stderr } = await run(t, false, hold);
    assert.match(stderr, /it runs\n {4}at count \(.*program\.mjs:\d+:\d+\)\n(?:.*\n)*went on/);
  });

  test("ends the process if that is configured", { timeout: 300_000 }, async (t) => {
    const { stderr, signal } = await run(t, true, waits(50));
    assert.match(stderr, /the process ends, as the option loop_watchdog_exit says/);
    assert.equal(signal, "SIGKILL");
  });
});
