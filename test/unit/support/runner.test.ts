/** Runs `test/run.mjs` on files that are made for this test. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { write } from "#test/unit/core/module/support.ts";

const runner = fileURLToPath(new URL("../../run.mjs", import.meta.url));
let folder: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-runner-"));
  await write(folder, {
    "passing.test.ts": 'import { test } from "node:test";\ntest("one", () => {});\ntest("two", () => {});\n',
    "failing.test.ts":
      'import { test } from "node:test";\ntest("one", () => { throw new Error("as it is wrong"); });\ntest("2", () => {});\n',
    "late.test.ts":
      'import { test } from "node:test";\ntest("late", async () => {\n  await 0;\n  setTimeout(() => { throw new Error("late"); }, 1);\n  await new Promise((resolve) => setTimeout(resolve, 50));\n});\n',
    "suite.test.ts": `import { describe, test } from "node:test";
      describe("a suite", () => {
        setTimeout(() => { throw new Error("uncaught"); }, 1);
        test("passes", () => new Promise((resolve) => setTimeout(resolve, 50)));
      });`,
    "nested.test.ts": `import { before, describe, test } from "node:test";
      let outer;
      before(async () => { await 0; outer = 1; });
      describe("a suite", () => {
        let inner;
        before(async () => { await 0; inner = outer + 1; });
        test("is run after its hooks", () => { if (inner !== 2) throw new Error(String(inner)); });
      });`,
  });
});
after(() => rm(folder, { recursive: true }));

interface Ended {
  readonly code: number;
  readonly output: string;
}

function run(...args: readonly string[]): Promise<Ended> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return new Promise((resolve) => {
    execFile(process.execPath, [runner, ...args], { env, cwd: folder }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr });
    });
  });
}

const file = (name: string) => join(folder, `${name}.test.ts`);

test("files and folders are run, and a failing test is reported with its position", async () => {
  const passing = await run(file("passing"));
  assert.deepEqual([passing.code, /pass 2\b/.test(passing.output)], [0, true], passing.output);
  const failing = await run(folder);
  assert.equal(failing.code, 1);
  assert.match(failing.output, /failed: one \(.*failing\.test\.ts:2:1\)\s+Error: as it is wrong/);
});

test("--name runs the tests whose names contain a text", async () => {
  const { code, output } = await run("--name", "two", folder);
  assert.deepEqual([code, /tests 1\b/.test(output)], [0, true], output);
});

test("an uncaught exception fails its file and is reported with its position", async () => {
  const { code, output } = await run(file("late"));
  assert.equal(code, 1, output);
  assert.match(output, /Error: late\n\s+at .*late\.test\.ts:4:/);
});

test("an uncaught exception that belongs to a suite is reported, although each of its tests passes", async () => {
  const { code, output } = await run(file("suite"));
  assert.equal(code, 1, output);
  assert.match(output, /fail 0\b/);
  assert.match(output, /failed: a suite \(.*suite\.test\.ts:2:\d+\)\s+Error: uncaught/);
});

test("long files start before files that share a process, in the order in which Node sorts them", async () => {
  const { together } = await import(new URL("../../support/together.mjs", import.meta.url).href);
  const long = ["clients", "endurance"].map((name) => join("/test", name, "long.test.ts"));
  const shared = Array.from({ length: 400 }, () => file("nested"));
  const { files, remove } = together([...shared, ...long]) as { files: string[]; remove(): void };
  try {
    assert.ok(files.length > 10 + long.length, `${files.length}`);
    assert.deepEqual(files, [...files].sort());
    const texts = files.map((each) => readFileSync(each, "utf8"));
    const holding = (path: string) => texts.flatMap((text, at) => (text.includes(path) ? [at] : []));
    assert.deepEqual(long.map(holding), [[0], [1]]);
    assert.deepEqual(holding(file("nested")), texts.map((_, at) => at).slice(2));
  } finally {
    remove();
  }
});

test("small files of a folder share a process, but not their hooks, and failures are reported", async () => {
  const shared = join(folder, "shared");
  const counting = (text: string) => `import { beforeEach, test } from "node:test";\n${text}`;
  const hooked = "beforeEach(() => { (global as any).hooks = ((global as any).hooks ?? 0) + 1; });\n";
  await write(shared, {
    "package.json": '{ "type": "module" }',
    "a.test.ts": counting('test("a", () => { (global as any).seen = 1; });'),
    "b.test.ts": counting('test("b", () => { if ((global as any).seen !== 1) throw new Error("alone"); });'),
    "c.test.ts": counting('test("c", () => { throw new Error("in c"); });'),
    "hooks.test.ts": counting(
      `${hooked}test("d", () => { if ((global as any).seen + (global as any).hooks !== 2) throw new Error("d"); });`,
    ),
    "later.test.ts": counting('test("f", () => { if ((global as any).hooks !== 1) throw new Error("f"); });'),
    "waits.test.ts": counting('await 0;\ntest("e", () => {});'),
    "waits.alone.test.ts": counting('await 0;\ntest("g", () => { if ((global as any).seen) throw new Error("g"); });'),
  });
  const { code, output } = await run(shared);
  assert.equal(code, 1);
  assert.deepEqual([/pass 5\b/.test(output), /fail 2\b/.test(output)], [true, true], output);
  assert.match(output, /failed: c \(.*c\.test\.ts:2:1\)\s+Error: in c/);
  assert.match(output, /top-level await.*\n.*waits\.test\.ts/);
  await rm(join(shared, "c.test.ts"));
  await rm(join(shared, "waits.test.ts"));
  assert.equal((await run(shared)).code, 0);
});

test("a file that cannot be imported fails, and the error names it", async () => {
  const broken = join(folder, "broken");
  await write(broken, {
    "package.json": '{ "type": "module" }',
    "a.test.ts": 'import { test } from "node:test";\ntest("a", () => {});\n',
    "b.test.ts": 'import "./missing.ts";\n',
  });
  const { code, output } = await run(broken);
  assert.equal(code, 1);
  assert.match(output, /missing\.ts' imported from .*b\.test\.ts/);
  assert.deepEqual([/pass 1\b/.test(output), /fail 1\b/.test(output)], [true, true], output);
});

test("hooks apply only to their own suites", async () => {
  const { code, output } = await run(file("nested"));
  assert.deepEqual([code, /suites 1\b/.test(output)], [0, true], output);
});

test("no suite in this repository awaits before it declares its tests", () => {
  const folder = fileURLToPath(new URL("../..", import.meta.url));
  const waiting = globSync("**/*.test.ts", { cwd: folder }).filter((name) =>
    /\bdescribe\([^()]*\basync\b/.test(readFileSync(join(folder, name), "utf8")),
  );
  assert.deepEqual(waiting, []);
});

test("--times prints how long files took", async () => {
  assert.match((await run("--times", file("passing"))).output, /\d\.\d .*passing\.test\.ts\n.*in all files together/);
});
