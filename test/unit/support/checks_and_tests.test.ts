/** `test/support/checks_and_tests.mjs`, with which `npm test` runs both at the same time. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";

const tested = new URL("../../support/checks_and_tests.mjs", import.meta.url).href;

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the sources of two programs as checks and as tests. */
function run(checks: string, tests: string): Promise<Ended> {
  const words = (text: string) => JSON.stringify(["--eval", text]);
  const program = `import { runChecksAndTests } from "${tested}"; process.exitCode = await runChecksAndTests(${words(checks)}, ${words(tests)});`;
  return new Promise((resolve) => {
    execFile(process.execPath, ["--input-type=module", "--eval", program], (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

const say = (text: string) => `console.log("${text}");`;

test("if the checks pass, only the output of the tests is shown, and their exit code is returned", async () => {
  assert.deepEqual(await run(say("checked"), say("tested")), { code: 0, stdout: "tested\n", stderr: "" });
  const failed = await run(say("checked"), `${say("tested")} process.exitCode = 3;`);
  assert.deepEqual(failed, { code: 3, stdout: "tested\n", stderr: "" });
});

test("if the checks fail, their output is shown and the tests are stopped", async () => {
  const { code, stderr } = await run(`${say("a type is wrong")} process.exitCode = 2;`, "setInterval(() => {}, 1000);");
  assert.equal(code, 2);
  assert.match(stderr, /a type is wrong/);
});
