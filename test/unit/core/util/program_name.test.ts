import assert from "node:assert/strict";
import { delimiter } from "node:path";
import { test } from "node:test";
import { programName } from "#core/util/program_name.ts";

const path = ["/clone/node_modules/.bin", "/usr/local/bin", "", "/usr/bin"].join(delimiter);
const having = (...files: string[]) => programName(path, (file) => files.includes(file));

test("the name of the program is modhost if a shell finds it", () =>
  assert.equal(having("/usr/local/bin/modhost"), "modhost"));

test("the name of the program is npx modhost elsewhere, also if npm has started the program", () => {
  assert.equal(having(), "npx modhost");
  assert.equal(having("/clone/node_modules/.bin/modhost"), "npx modhost");
});
