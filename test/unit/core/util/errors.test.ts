import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { errorTable, HttpError, ModhostError, readableThrown, reasonOf } from "#core/util/errors.ts";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const sources = globSync("{core,modules}/**/*.ts", { cwd: root })
  .filter((file) => file !== "core/util/errors.ts")
  .map((file) => readFileSync(`${root}/${file}`, "utf8"))
  .join("\n");

describe("the error table", () => {
  for (const code of Object.keys(errorTable)) {
    test(`${code} is raised somewhere`, () => assert.ok(sources.includes(`"${code}"`)));
  }

  test("details are inserted into the message, and a missing one stays visible", () => {
    const error = new ModhostError("PORT_TAKEN", { port: 80, address: "::1" });
    assert.equal(
      error.message,
      "Port 80 on ::1 is taken by another program: stop it, or set the option {option} to another port, for example {example}",
    );
    assert.deepEqual([error.code, error.status, error.expose, error.details.port], ["PORT_TAKEN", 500, false, 80]);
  });

  test("an error is recognised across copies of the package, and other values are not", () => {
    const foreign = Object.assign(new Error("x"), { [Symbol.for("modhost.error")]: true });
    assert.ok(ModhostError.is(foreign));
    for (const other of [new Error("x"), undefined, null, "x", {}]) assert.equal(ModhostError.is(other), false);
  });
});

describe("HttpError", () => {
  test("shows its message below 500 by default", () => {
    assert.deepEqual([new HttpError(404, "no").expose, new HttpError(503, "no").expose], [true, false]);
    assert.equal(new HttpError(503, "later", { expose: true }).expose, true);
  });

  test("accepts only statuses from 400 to 599", () => {
    for (const code of [200, 399, 600, 404.5, Number.NaN]) assert.throws(() => new HttpError(code), RangeError);
  });
});

describe("a thrown value can be read", () => {
  for (const [how, prepare] of [
    ["that throws", () => assert.fail("while a stack is prepared")],
    ["that gives no text", () => []],
  ] as const) {
    test(`although a module has set a prepareStackTrace ${how}`, (t) => {
      const { prepareStackTrace } = Error;
      t.after(() => Object.assign(Error, { prepareStackTrace }));
      Error.prepareStackTrace = prepare as typeof prepareStackTrace;
      const tamed = readableThrown(new Error("mine")) as Error;
      assert.match(tamed.stack ?? "", how === "that throws" ? /^Error: .*\n +at /s : /^Error: .*mine/);
      assert.match(reasonOf(tamed), /\bmine\b/);
    });
  }
});
