/** `test/support/beside.mjs`, by which `npm test` runs checks and tests at the same time. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";

const beside = new URL("../../support/beside.mjs", import.meta.url).href;

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The two as text of programs. */
function run(checks: string, tests: string): Promise<Ended> {
  const words = (text: string) => JSON.stringify(["--eval", text]);
  const program = `import { beside } from "${beside}"; process.exitCode = await beside(${words(checks)}, ${words(tests)});`;
  return new Promise((resolve) => {
    execFile(process.execPath, ["--input-type=module", "--eval", program], (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

const say = (text: string) => `console.log("${text}");`;

test("checks that pass say nothing; the exit code is that of the tests, whose output is shown", async () => {
  assert.deepEqual(await run(say("checked"), say("tested")), { code: 0, stdout: "tested\n", stderr: "" });
  const failed = await run(say("checked"), `${say("tested")} process.exitCode = 3;`);
  assert.deepEqual(failed, { code: 3, stdout: "tested\n", stderr: "" });
});

test("checks that fail are shown, and stop the tests", async () => {
  const { code, stderr } = await run(`${say("a type is wrong")} process.exitCode = 2;`, "setInterval(() => {}, 1000);");
  assert.equal(code, 2);
  assert.match(stderr, /a type is wrong/);
});
