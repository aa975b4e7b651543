/**
 * Tests that there is only one copy of the node's library. The host loads the files of a module
 * under addresses that change with each reload, so an import of the library by its path may load
 * another copy. An import by the name of the package always loads the same copy.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** Yields the paths that files import. */
function paths(files: readonly string[]): { readonly file: string; readonly path: string }[] {
  return files.flatMap((file) => {
    const source = readFileSync(join(root, file), "utf8");
    const found = source.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*["']([.#][^"']*)["']/g);
    return Array.from(found, ([, path = ""]) => ({ file, path }));
  });
}

test("other modules import the node's library by the name of the package", () => {
  const files = globSync("modules/**/*.ts", { cwd: root }).filter((file) => !file.startsWith("modules/mod_node/"));
  assert.ok(files.length > 50);
  const below = paths(files).filter(({ path }) => path.includes("mod_node/") || path.startsWith("#node/"));
  // The module itself is an exception: the command line passes it to the host that it starts, and
  // reads its options.
  const path = "../../../mod_node/mod_node.ts";
  assert.deepEqual(
    below.sort((one, other) => (one.file < other.file ? -1 : 1)),
    [
      { file: "modules/mod_http_api/cli/node/inline_modules.ts", path },
      { file: "modules/mod_http_api/cli/node/store.ts", path },
    ],
  );
});

test("so does the module of the node", () => {
  const own = paths(["modules/mod_node/mod_node.ts", ...globSync("modules/mod_node/module/*.ts", { cwd: root })]);
  assert.ok(own.length > 3);
  const others = own.filter(({ path }) => !/^\.\/(module\/)?\w+\.ts$|\/core\/types\.ts$/.test(path));
  assert.deepEqual(others, []);
});
