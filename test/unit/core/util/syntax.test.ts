import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { syntaxFault } from "#core/util/syntax.ts";
import { folderOf } from "../module/support.ts";

test("the line of a syntax error is found while the process continues with other work", async (t) => {
  const folder = await folderOf(t, { "broken.ts": "const a: number = 1;\n\nlet a;\n", "whole.js": "export let a;" });
  let isFound = false;
  const found = syntaxFault(join(folder, "broken.ts")).finally(() => (isFound = true));
  await turn();
  assert.equal(isFound, false);
  assert.deepEqual(await found, { line: "3", what: undefined });
  assert.equal(await syntaxFault(join(folder, "whole.js")), undefined);
});
