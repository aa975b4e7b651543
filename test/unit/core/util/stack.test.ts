import assert from "node:assert/strict";
import { test } from "node:test";
import { ModhostError } from "#core/util/errors.ts";
import { hasOwnFrames, linesOf, stackOf } from "#core/util/stack.ts";
import { startHost } from "#test/support/host.ts";

test("the log of a failed request names the module's file, and folds frames outside of the module", async () => {
  await using running = await startHost({
    plugins: {
      mod_faulty: `export default function faulty(module) {
        module.depends("http");
        module.provides("http", { route: { "GET /": () => inner() } });
      }
      function inner() {
        throw new Error("outer", { cause: new TypeError("the reason") });
      }`,
    },
    config: { modules_enabled: ["http", "faulty"] },
  });
  await running.host.reload("faulty");
  assert.equal((await fetch(`http://127.0.0.1:${running.http}/faulty`)).status, 500);
  const line =
    running
      .log()
      .split("\n")
      .find((text) => text.includes("failed: Error: outer")) ?? running.log();
  const { msg } = JSON.parse(line) as { msg: string };
  const frames = msg.split("\n").slice(1);
  assert.match(frames[0] ?? "", /^ {4}at inner \(\/.*\/plugins\/mod_faulty\.js:\d+:\d+\)$/);
  assert.match(frames[1] ?? "", /^ {4}at .*\/plugins\/mod_faulty\.js:\d+:\d+\)?$/);
  assert.match(frames[2] ?? "", /^ {4}at … \(\d+ of modhost and Node\.js\)$/);
  assert.match(frames[3] ?? "", /caused by TypeError: the reason/);
  assert.doesNotMatch(msg, /\?v=|file:/);
});

test("a stack of the host alone stays complete, and every thrown value has a stack", () => {
  const error = new Error("own");
  error.stack = `Error: own\n    at run (${import.meta.dirname.replace(/test.unit.core.util$/, "core/http/x.ts")}:1:1)`;
  assert.equal(stackOf(error), error.stack);
  assert.equal(stackOf("text"), "text");
  assert.equal(stackOf(undefined), "undefined");
  const circle = new Error("circle");
  circle.cause = circle;
  assert.match(stackOf(circle), /^Error: circle\n/);
});

test("a permission that was refused has its message without the frames of the host", () => {
  const refusal = new ModhostError("PERMISSION_DENIED", { name: "shop", act: "x", grant: "y" });
  const file = import.meta.dirname.replace(/test.unit.core.util$/, "core/http/x.ts");
  refusal.stack = `ModhostError: ${refusal.message}\n    at run (${file}:1:1)`;
  assert.equal(stackOf(refusal), `ModhostError: ${refusal.message}`);
});

test("a long message and a long chain of causes are cut, and the frames stay", () => {
  const error = new Error("x".repeat(1_000_000));
  assert.ok(stackOf(error).length < 100_000);
  assert.match(stackOf(error), /more characters are left out/);
  assert.match(linesOf(error).at(-1) ?? "", /^ +at /);
  let chain = new Error("first");
  for (let count = 0; count < 1000; count += 1) chain = new Error("next", { cause: chain });
  assert.ok(stackOf(chain).split("caused by").length < 15);
  assert.match(stackOf(chain), /caused by more causes$/);
});

test("an error of files outside of this package is not the host's own", () => {
  const foreign = new Error("foreign");
  foreign.stack =
    "Error: foreign\n    at run (/elsewhere/node_modules/library/index.js:1:1)\n    at node:internal/timers:5:1";
  assert.equal(hasOwnFrames(foreign), false);
  assert.equal(hasOwnFrames(new Error("own")), true);
});
