/** Tests that paths in pages, scripts and comments exist in this tree. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { project } from "./guides/support.ts";

const folders = "core,modules,test,docs,config";
const everywhere = globSync(`{${folders}}/**`, { cwd: project });
const exists = new Set([...everywhere, ...globSync("*", { cwd: project })]);
/** Ends of paths: `pins/pins.ts` stands for the only file with that end. */
const endings = new Set(
  everywhere.flatMap((path) => {
    const parts = path.split("/");
    return parts.map((_, at) => parts.slice(at).join("/"));
  }),
);

/** Placeholders that stand for a file of the reader. */
const placeholder = /(?:\b|_)NAME\b|\bmod_(?:x|shop)\b|^node_modules\//;

const fromRoot = new RegExp(`(?<![\\w./@-])(?:${folders.replaceAll(",", "|")})/[\\w./-]*\\w`, "g");
const inside = /(?<![\w./@<>*{}-])(?:[\w-]+\/)+[\w-]+\.(?:ts|mjs|cjs|md|yaml|json)(?![\w.])/g;

const read = (path: string) => readFileSync(join(project, path), "utf8");

/** Returns the comments of a source without their marks. */
function commentsOf(source: string): string {
  return [...source.matchAll(/\/\*\*?([\s\S]*?)\*\/|(?<!["':\w])\/\/ (.*)/g)]
    .map(([, block, line]) => block ?? line)
    .join("\n");
}

/** Returns the paths in a text that begin at the root of the tree and do not exist. */
function lostFromRoot(text: string): string[] {
  const isFile = (path: string) => /\.(ts|mjs|cjs|md|json|yaml|grit|py|sh)$/.test(path);
  return (text.match(fromRoot) ?? []).filter((path) => isFile(path) && !exists.has(path) && !placeholder.test(path));
}

/** Returns the ends of paths in a text that match no file. */
function lostInside(text: string): string[] {
  return (text.match(inside) ?? []).filter((path) => !endings.has(path) && !placeholder.test(path));
}

/** Source files that a page names in code, by any end of their path, and that do not exist. */
function lostSources(text: string): string[] {
  const prose = text.replaceAll(/^```.*?^```$/gms, "");
  const names = [...prose.matchAll(/`(?:\.{1,2}\/)*([\w/-]+(?:\.\w+)*\.(?:ts|cjs))`/g)].map(([, name]) => name ?? "");
  return names.filter((name) => !endings.has(name) && !placeholder.test(name));
}

function lostIn(paths: readonly string[], find: (path: string) => readonly string[]): string[] {
  return paths.flatMap((path) => find(path).map((lost) => `${path} names ${lost}`));
}

test("pages name existing paths", () => {
  const pages = globSync(["*.md", "{core,docs,modules,test}/**/*.md"], { cwd: project });
  assert.ok(pages.length > 20);
  assert.deepEqual(
    lostIn(pages, (page) => lostFromRoot(read(page))),
    [],
  );
});

test("the READMEs of folders name existing source files", () => {
  const pages = everywhere.filter((path) => /^(?:core|modules|config)\b.*README\.md$/.test(path));
  assert.ok(pages.length > 40);
  assert.deepEqual(
    lostIn(pages, (page) => lostSources(read(page))),
    [],
  );
});

test("scripts and settings name existing paths", () => {
  const settings = [
    "package.json",
    "biome.json",
    "tsconfig.json",
    "config/build/tsconfig.build.json",
    "config/build/layers.cjs",
  ];
  assert.deepEqual(
    lostIn(settings, (file) => lostFromRoot(read(file))),
    [],
  );
});

test("comments name existing paths", () => {
  const sources = globSync("{core,modules,test,config}/**/*.{ts,mjs,cjs}", { cwd: project });
  assert.ok(sources.length > 500);
  assert.deepEqual(
    lostIn(sources, (file) => {
      const comments = commentsOf(read(file));
      return [...lostFromRoot(comments), ...lostInside(comments)];
    }),
    [],
  );
});

test("a path that does not exist is found in each form", () => {
  assert.deepEqual(lostFromRoot("see core/gone.ts, core/host.ts and `docs/reference/gone.md`"), [
    "core/gone.ts",
    "docs/reference/gone.md",
  ]);
  assert.deepEqual(lostSources("`gone.ts`, `../host.ts` and `routing/routes.ts`\n```ts\n`gone_too.ts`\n```\n"), [
    "gone.ts",
  ]);
  assert.deepEqual(lostInside("http/gone.ts, cli/launch.mjs, node_modules/x/y.mjs"), ["http/gone.ts"]);
  assert.equal(commentsOf('/** a */ const b = "// no"; // c\n/* d\n e */'), " a \nc\n d\n e ");
});
