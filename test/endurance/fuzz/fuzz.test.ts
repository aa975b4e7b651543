import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { fuzz } from "./fuzz.ts";
import { makeRequest } from "./grammar.ts";
import { fuzzNode } from "./node/fuzz.ts";
import { kinds } from "./node/kinds.ts";
import { Random } from "./random.ts";
import { fuzzReaders } from "./readers/readers.ts";

/** Limits the time on a very slow machine. Normally, `count` ends each test before. */
const seconds = 120;

/** `npm run test:fuzz` uses another seed each time. This test has the same result on every run. */
const seed = 20;

test("150 damaged requests do no harm", async () => {
  const summary = await fuzz({ seconds, seed, count: 150 });
  assert.deepEqual(summary.failures, []);
  assert.ok(summary.exchanges > 50, `only ${summary.exchanges} exchanges`);
  assert.ok(Object.keys(summary.statuses).length >= 4, `statuses: ${JSON.stringify(summary.statuses)}`);
});

test("50 rounds of odd calls do not harm the node", async () => {
  const { failures, rounds } = await fuzzNode({ seconds, seed, count: 50 });
  assert.deepEqual(failures, []);
  assert.deepEqual(Object.keys(rounds).sort(), Object.keys(kinds).sort());
});

test("1,200 damaged inputs are read or rejected, and values that are written and read again are equal", async () => {
  const { failures, taken, refused } = await fuzzReaders({ seconds, seed, count: 1200 });
  assert.deepEqual(failures, []);
  assert.ok(taken > 20 && refused > 20, `${taken} were read, ${refused} refused`);
});

test("an input that is read forever ends the run, and the error names it", async () => {
  const watchdog = new URL("readers/watchdog.ts", import.meta.url);
  const program = `import { Watchdog } from ${JSON.stringify(watchdog.href)};
    new Watchdog(0.2).mark(77);
    setTimeout(() => { for (;;); }, 50);`;
  const args = ["--conditions=source", "--input-type=module", "--eval", program];
  const ended = promisify(execFile)(process.execPath, args, { timeout: 300_000 });
  await assert.rejects(ended, { signal: "SIGKILL", stdout: "FAILED readers: input 77 is read for more than 0.2 s\n" });
});

test("a seed repeats its requests", () => {
  const made = (seed: number) => Array.from({ length: 50 }, (_, n) => makeRequest(new Random(seed + n)));
  assert.deepEqual(made(7), made(7));
  assert.notDeepEqual(made(7), made(1000));
});
