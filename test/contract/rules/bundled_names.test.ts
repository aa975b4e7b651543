/**
 * Tests that the sources of the host do not mention the node or modules that need it: such modules
 * have no privilege over other modules.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));

const words = /ipfs|kubo|mfs|pinning|http_api|http_admin|http_gateway/i;

/** Returns lines with such a word, as `FILE:LINE`. */
function linesIn(file: string, text: string): string[] {
  return text.split("\n").flatMap((line, at) => (words.test(line) ? [`${file}:${at + 1}`] : []));
}

test("a word of the node is found in code, comments and texts", () => {
  const text = 'const path = "/ipfs/";\n// As Kubo does.\nconst plain = 1;\nmodule.depends("http_api");\n';
  assert.deepEqual(linesIn("a.ts", text), ["a.ts:1", "a.ts:2", "a.ts:4"]);
});

test("no file of core has a word of the node", () => {
  const files = globSync("core/**/*", { cwd: root, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  assert.ok(files.length > 200, `${files.length} files`);
  const found = files.flatMap((file) => linesIn(file.slice(root.length), readFileSync(file, "utf8")));
  assert.deepEqual(found, []);
});
