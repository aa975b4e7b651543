import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { write } from "#test/unit/core/module/support.ts";
import { Tree } from "./tree.ts";

let root: string;
let tree: Tree;

before(async () => {
  root = await mkdtemp(join(tmpdir(), "modhost-tree-"));
  await write(root, {
    "package.json": JSON.stringify({
      imports: { "#core/*": "./core/*", "#test/*": "./test/*" },
      exports: { "./node": { source: "./modules/mod_node/index.ts", default: "./dist/x.js" } },
    }),
    "core/low.ts": "export const low = 1;",
    "core/high.ts": 'import { low } from "./low.ts";',
    "core/typed.ts": 'import type { High } from "./high.ts";\nimport type {\n  Low,\n} from "./low.ts";',
    "core/started.ts": 'spawn(new URL("./child.mjs", import.meta.url));',
    "core/child.mjs": "",
    "modules/mod_node/index.ts": "",
    "modules/mod_http_files/index.ts": "",
    "docs/page.md": "",
    "docs/examples/mod_chat.ts": "",
    "test/fixtures/answers/one.json": "{}",
    "test/low.test.ts": 'import { low } from "#core/low.ts";',
    "test/high.test.ts": 'import "#core/high.ts";',
    "test/typed.test.ts": 'import "#core/typed.ts";',
    "test/started.test.ts": 'await import("#core/started.ts");',
    "test/node.test.ts": 'import { createNode } from "modhost/node";',
    "test/files.test.ts": 'const modules = "http,http_files";',
    "test/answers.test.ts": 'const folder = new URL("./fixtures/answers/", import.meta.url);',
    "test/all.test.ts": 'const root = new URL("../", import.meta.url); const core = "core/";',
    "test/contract/docs/pages.test.ts": "const of = (name) => new URL(`../../../docs/examples/$".concat(
      "{name}.ts`, base);",
    ),
  });
  tree = new Tree(root);
});
after(() => rm(root, { recursive: true }));

const affects = (file: string, tests: readonly string[]) =>
  assert.deepEqual(
    tree.affected([file]),
    tests.map((name) => `test/${name}.test.ts`),
  );

test("a change affects the tests that import the file, the nearest first", () =>
  affects("core/low.ts", ["low", "high"]));
test("an import of types alone does not count", () => affects("core/high.ts", ["high"]));
test("a file that names another one by its URL needs it", () => affects("core/child.mjs", ["started"]));
test("a file that imports an export of the package needs its source", () =>
  affects("modules/mod_node/index.ts", ["node"]));
test("a test that loads a module by its name needs it", () => affects("modules/mod_http_files/index.ts", ["files"]));
test("a file that names a folder needs all files in it", () => affects("test/fixtures/answers/one.json", ["answers"]));
test("a file that assembles names in a folder needs all files in it", () =>
  affects("docs/examples/mod_chat.ts", ["contract/docs/pages"]));
test("the tests of the documentation need every page", () => affects("docs/page.md", ["contract/docs/pages"]));
test("a changed test is affected, and a deleted one is not", () => {
  affects("test/low.test.ts", ["low"]);
  affects("test/gone.test.ts", []);
});

test("in this tree, the tests of a file are among its nearest", () => {
  const nearest = new Tree(fileURLToPath(new URL("../../", import.meta.url))).affected([
    "modules/mod_node/util/lru.ts",
  ]);
  assert.ok(nearest.slice(0, 3).includes("test/unit/modules/mod_node/util/lru.test.ts"), nearest.slice(0, 3).join());
});
