import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const limit = fileURLToPath(import.meta.resolve("#test/support/time_limit.cjs"));

function run(program: string, more: NodeJS.ProcessEnv = { NODE_TEST_CONTEXT: "child-v8" }) {
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined, TEST_PROCESS_SECONDS: "0.2", ...more };
  return spawnSync(process.execPath, ["--require", limit, "--eval", program], { env, encoding: "utf8" });
}

test("a test process with an open server ends with an error that lists the server", () => {
  const { status, stderr } = run('require("node:net").createServer().listen(0, "127.0.0.1")');
  assert.equal(status, 1);
  assert.match(stderr, /did not end within 0\.2 s\. It used .* MiB; load .*\. Active resources: .*TCPServerWrap/);
});

test("a test process that takes too much memory ends with an error", () => {
  const more = { NODE_TEST_CONTEXT: "child-v8", TEST_PROCESS_SECONDS: "60", TEST_PROCESS_MIB: "10" };
  const { status, stderr } = run('require("node:net").createServer().listen(0, "127.0.0.1")', more);
  assert.equal(status, 1);
  assert.match(stderr, /takes more than 10 MiB of memory\. It used/);
});

test("the limit does not keep a finished process alive", () => {
  assert.equal(run("0").status, 0);
});

test("the runner itself has no limit", () => {
  assert.equal(run("setTimeout(() => undefined, 500)", {}).status, 0);
});
