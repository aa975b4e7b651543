import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { ModhostError, reasonOf } from "#core/util/errors.ts";
import { explainMissing } from "#core/util/missing_package.ts";
import { folderOf } from "#test/unit/core/module/support.ts";

test("an optional package that npm left out is named with the command that installs it, and other failures stay unchanged", async (t) => {
  const folder = await folderOf(t, {
    "package.json": JSON.stringify({ type: "module", optionalDependencies: { "@left/out": "1", "left-out": "1" } }),
    "lib/scoped.js": 'import "@left/out/part.js";',
    "lib/plain.js": 'import "left-out";',
    "lib/needed.js": 'import "needed-always";',
    "lib/wrong.js": 'throw new TypeError("wrong");',
  });
  const file = join(folder, "lib/plain.js");
  const explained = async (name: string) => {
    const error = await import(pathToFileURL(join(folder, "lib", name)).href).catch((thrown: unknown) => thrown);
    return [error, explainMissing(error, "chat", file)];
  };
  for (const [name, missing] of [
    ["scoped.js", "@left/out"],
    ["plain.js", "left-out"],
  ] as const) {
    const [error, found] = await explained(name);
    assert.ok(ModhostError.is(found));
    assert.deepEqual([found.code, found.cause], ["PACKAGE_MISSING", error]);
    assert.equal(
      reasonOf(found),
      `The module chat needs the package ${missing}, which is not installed: npm install --include=optional installs it`,
    );
  }
  for (const name of ["needed.js", "wrong.js"]) {
    const [error, found] = await explained(name);
    assert.equal(found, error);
  }
  assert.throws(
    () => createRequire(file)("left-out/part"),
    (error) => ModhostError.is(explainMissing(error, "chat", file)),
  );
});
