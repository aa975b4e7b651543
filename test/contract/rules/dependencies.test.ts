/**
 * Tests that every dependency in the manifest is used. Packages that are installed with modhost are
 * used by its sources. Development packages are used by the sources, which bundle them, or by
 * tests, tools and scripts. The linter checks that every imported package is declared, and
 * `test/contract/package` compares the built program with the manifest.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const manifest: Readonly<Record<"dependencies" | "devDependencies" | "scripts", Readonly<Record<string, string>>>> =
  JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

const imports =
  /(?:\bfrom\s*|\bimport\s*\(?\s*|\bimport\.meta\.resolve\(\s*|\brequire(?:\.resolve)?\(\s*|createRequire\([^)]*\)\(\s*)["']([^"'#./][^"']*)["']/g;

/** Returns the names of the packages that files import, including imports of types. */
function imported(source: string): string[] {
  const specifiers = [...source.matchAll(imports)].map(([, specifier = ""]) => specifier);
  return specifiers.map((specifier) => specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/"));
}

function importedBelow(...folders: readonly string[]): Set<string> {
  const files = globSync(`{${folders.join()}}/**/*.{ts,mjs,cjs,js}`, { cwd: root });
  return new Set(files.flatMap((file) => imported(readFileSync(join(root, file), "utf8"))));
}

function installed(name: string) {
  return JSON.parse(readFileSync(join(root, "node_modules", name, "package.json"), "utf8"));
}

/** Yields packages whose programs scripts run, by the program's name or by its path. */
function* runByScripts(names: Iterable<string>): Iterable<string> {
  const words = new Set(Object.values(manifest.scripts).flatMap((script) => script.split(/[\s;&|]+/)));
  for (const name of names) {
    if (words.values().some((word) => word.startsWith(`node_modules/${name}/`))) {
      yield name;
      continue;
    }
    const { bin = {} } = installed(name);
    if (typeof bin === "string" ? words.has(name) : Object.keys(bin).some((program) => words.has(program))) yield name;
  }
}

/** Returns the package that a package of declarations describes. */
const described = (name: string) => name.replace(/^@types\/(?:(.+)__)?/, (_, scope) => (scope ? `@${scope}/` : ""));

/**
 * Returns whether a package contains declarations. Nothing would read a separate package of
 * declarations for it.
 */
function declaresItself(name: string): boolean {
  const { types, typings, exports } = installed(name);
  return [types, typings].some(Boolean) || JSON.stringify(exports ?? {}).includes(".d.ts");
}

function unused(names: readonly string[], used: ReadonlySet<string>): string[] {
  return names.filter((name) => {
    const about = described(name);
    if (about === name) return !used.has(name);
    return !(about === "node" || (used.has(about) && !declaresItself(about)));
  });
}

test("imports are found in all forms", () => {
  const source = `
    import Koa, { type Context } from "koa"; import "ws"; import type { A } from "@a/b/c.js";
    export * from "yaml"; await import("semver/functions/lt.js"); import.meta.resolve("multiformats/cid");
    const Router = createRequire(import.meta.url)("@koa/router"); require("lmdb");
    import { b } from "#core/b.ts"; import c from "./c.ts"; const text = "ipns";`;
  assert.deepEqual(imported(source), ["koa", "ws", "@a/b", "yaml", "semver", "multiformats", "@koa/router", "lmdb"]);
});

test("every dependency is used by the sources", () => {
  assert.deepEqual(unused(Object.keys(manifest.dependencies), importedBelow("core", "modules")), []);
});

test("every dependency of development is used by the sources, the tests, the tools or the scripts", () => {
  // A folder of this project is not an external package.
  const names = Object.entries(manifest.devDependencies).flatMap(([name, at]) =>
    at.startsWith("file:") ? [] : [name],
  );
  const used = importedBelow("core", "modules", "test", "config", "docs").union(new Set(runByScripts(names)));
  const peers = names
    .filter((name) => used.has(name))
    .flatMap((name) => Object.keys(installed(name).peerDependencies ?? {}));
  assert.deepEqual(unused(names, used.union(new Set(peers))), []);
});

test("an unused package is found, and so are declarations for a package that contains its own", () => {
  assert.deepEqual(unused(["nothing-imports-this", "koa", "@types/koa__router"], new Set(["koa", "@koa/router"])), [
    "nothing-imports-this",
    "@types/koa__router",
  ]);
});
