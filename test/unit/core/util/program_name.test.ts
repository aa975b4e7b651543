import assert from "node:assert/strict";
import { delimiter } from "node:path";
import { test } from "node:test";
import { programName } from "#core/util/program_name.ts";

const path = ["/clone/node_modules/.bin", "/usr/local/bin", "", "/usr/bin"].join(delimiter);
const having = (...files: string[]) => programName(path, (file) => files.includes(file));

test("is modhost where a shell finds it", () => assert.equal(having("/usr/local/bin/modhost"), "modhost"));

test("goes by npx elsewhere, also where npm has started the program", () => {
  assert.equal(having(), "npx modhost");
  assert.equal(having("/clone/node_modules/.bin/modhost"), "npx modhost");
});
