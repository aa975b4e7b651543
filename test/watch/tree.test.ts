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
test("an import of types alone is none", () => affects("core/high.ts", ["high"]));
test("a file is needed by its URL", () => affects("core/child.mjs", ["started"]));
test("a file is needed by the name that the package exports", () => affects("modules/mod_node/index.ts", ["node"]));
test("a module is needed by its name", () => affects("modules/mod_http_files/index.ts", ["files"]));
test("a folder is needed with all that is in it", () => affects("test/fixtures/answers/one.json", ["answers"]));
test("a folder is needed when names in it are put together", () =>
  affects("docs/examples/mod_chat.ts", ["contract/docs/pages"]));
test("a page is needed by the tests of the documentation", () => affects("docs/page.md", ["contract/docs/pages"]));
test("a test that changes is affected, and one that is gone is not", () => {
  affects("test/low.test.ts", ["low"]);
  affects("test/gone.test.ts", []);
});

test("in this tree, the tests of a file are among its nearest", () => {
  const nearest = new Tree(fileURLToPath(new URL("../../", import.meta.url))).affected([
    "modules/mod_node/util/lru.ts",
  ]);
  assert.ok(nearest.slice(0, 3).includes("test/unit/modules/mod_node/util/lru.test.ts"), nearest.slice(0, 3).join());
});
