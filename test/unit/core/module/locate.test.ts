import assert from "node:assert/strict";
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { listModules, locateModule, locatePath } from "#core/module/locate.ts";
import { moduleName } from "#core/util/module_name.ts";
import { bundledModules } from "#core/util/package.ts";
import { type Files, folderOf } from "./support.ts";

async function found(t: TestContext, files: Files, name: string, paths: readonly string[] = ["."]) {
  const folder = realpathSync(await folderOf(t, files));
  const pluginPaths = paths.map((path) => join(folder, path));
  const { file = "", ...source } = locateModule(name, pluginPaths, folder);
  return { ...source, file: file.slice(folder.length + 1), folder };
}

test("the name of a module has neither the prefix mod_ nor an extension", () => {
  for (const entry of [
    "mod_hello",
    "hello",
    "mod_hello.ts",
    "./x/mod_hello.mjs",
    "/a/mod_hello",
    "@me/modhost-mod-hello",
  ]) {
    assert.equal(moduleName(entry), "hello");
  }
  assert.equal(moduleName("mod_mod_hello"), "mod_hello");
});

describe("a module is found", () => {
  test("as a file, .ts before .js", async (t) => {
    assert.equal((await found(t, { "mod_x.js": "", "mod_x.ts": "" }, "x")).file, "mod_x.ts");
    assert.equal((await found(t, { "mod_x.cjs": "" }, "mod_x")).file, "mod_x.cjs");
  });

  test("only if it has a name", async (t) => {
    const folder = await folderOf(t, { "mod_.ts": "", "other/mod_/index.ts": "", "mod_x.ts": "" });
    const empty = { code: "MODULE_INVALID", message: /its name is empty: name a module by mod_NAME/ };
    assert.throws(() => listModules(folder), empty);
    assert.throws(() => listModules(join(folder, "other")), empty);
    assert.throws(() => locatePath(join(folder, "mod_.ts")), empty);
  });

  test("as a folder with an index, or with a file of its name, which belongs to it", async (t) => {
    const { file, root, folder, directory } = await found(t, { "mod_x/index.mjs": "" }, "x");
    assert.equal(file, "mod_x/index.mjs");
    assert.equal(root, join(folder, "mod_x"));
    assert.equal(directory, root);
    assert.equal((await found(t, { "mod_x/mod_x.ts": "" }, "x")).file, "mod_x/mod_x.ts");
    assert.equal((await found(t, { "x/mod_x.ts": "" }, "x")).file, "x/mod_x.ts");
  });

  test("as a folder whose package.json names the file", async (t) => {
    const manifests: readonly [manifest: object, file: string][] = [
      [{ modhost: { kind: "module", entry: "src/a.ts" } }, "mod_x/src/a.ts"],
      [{ main: "lib/b.js" }, "mod_x/lib/b.js"],
      [{ exports: "./lib/b.js" }, "mod_x/lib/b.js"],
      [{ exports: { ".": { types: "./b.d.ts", import: "./lib/b.js" } } }, "mod_x/lib/b.js"],
    ];
    for (const [manifest, file] of manifests) {
      const files = { "mod_x/package.json": JSON.stringify(manifest), "mod_x/src/a.ts": "", "mod_x/lib/b.js": "" };
      assert.equal((await found(t, files, "x")).file, file);
    }
  });

  test("in the first folder that has it, and a file before a folder", async (t) => {
    const files = { "one/mod_y.ts": "", "two/mod_x.ts": "", "three/mod_x.ts": "", "two/mod_x/index.ts": "" };
    assert.equal((await found(t, files, "x", ["one", "two", "three"])).file, "two/mod_x.ts");
  });

  test("in plugin_paths before the bundled modules", async (t) => {
    assert.equal((await found(t, { "mod_http.ts": "" }, "http")).file, "mod_http.ts");
    assert.ok(locateModule("http", [], "/").file?.startsWith(bundledModules));
  });

  test("as an npm package with a modhost key, as seen from the folder of the config file", async (t) => {
    const manifest = (name: string) =>
      JSON.stringify({ name, modhost: { kind: "module", entry: "main.js", host: ">=0.1" } });
    for (const [id, entry, name] of [
      ["modhost-mod-x", "x", "x"],
      ["mod_x", "x", "x"],
      ["other-name", "other-name", "other-name"],
      ["@scope/modhost-mod-x", "@scope/modhost-mod-x", "x"],
    ] as const) {
      const base = `node_modules/${id}`;
      const source = await found(t, { [`${base}/package.json`]: manifest(id), [`${base}/main.js`]: "" }, entry);
      assert.equal(source.file, `${base}/main.js`);
      assert.equal(source.name, name);
    }
  });

  test("at a path with any name", async (t) => {
    const folder = await folderOf(t, { "hello.ts": "", "mod_dir/index.js": "" });
    assert.equal(locatePath(join(folder, "hello.ts")).name, "hello");
    assert.equal(locatePath(join(folder, "mod_dir")).name, "dir");
    assert.throws(() => locatePath(join(folder, "none.ts")), { code: "MODULE_NOT_FOUND" });
  });
});

describe("a module is refused", () => {
  test("if it does not exist; a folder of bundled modules in plugin_paths is named only once", () => {
    assert.throws(
      () => locateModule("x", [bundledModules], bundledModules),
      (error: Error) => error.message.split(bundledModules).length === 2,
    );
  });

  test("if it does not exist, with the folders that were searched", async (t) => {
    await assert.rejects(found(t, { ".mod_x.ts": "", "mod_x.txt": "", "mod_x.d.ts": "" }, "x"), (error: Error) => {
      assert.match(error.message, /No module x in .*modules, the npm packages x, modhost-mod-x, mod_x/);
      return true;
    });
  });

  test("if it is misspelt, with the name that was probably meant", async (t) => {
    const files = { "mod_gallery.ts": "" };
    await assert.rejects(found(t, files, "galery"), { message: /check the spelling \(is gallery meant\?\), or add/ });
    await assert.rejects(found(t, files, "http_apii"), { message: /\(is http_api meant\?\)/ });
    await assert.rejects(found(t, files, "picture"), { message: /check the spelling, or add/ });
  });

  test("if the file at a path cannot be a module", async (t) => {
    const file = join(await folderOf(t, { "README.md": "" }), "README.md");
    assert.throws(() => locatePath(file), /README\.md.*a module is a folder or ends in \.ts, \.js, \.mjs, \.cjs/);
  });

  test("if an npm package is not a module for this host", async (t) => {
    const base = "node_modules/modhost-mod-x";
    const package_ = (modhost: unknown) => ({
      [`${base}/package.json`]: JSON.stringify({ modhost }),
      [`${base}/m.js`]: "",
    });
    await assert.rejects(found(t, package_(undefined), "x"), { code: "MODULE_NOT_FOUND" });
    const unfit = package_({ kind: "module", entry: "m.js", host: "^99.0.0" });
    await assert.rejects(found(t, unfit, "x"), { code: "MODULE_INVALID", message: /requires modhost \^99\.0\.0/ });
    const empty = package_({ kind: "module", entry: "gone.js" });
    await assert.rejects(found(t, empty, "x"), { code: "MODULE_INVALID", message: /gone\.js/ });
  });

  test("if a published package contains TypeScript", async (t) => {
    const base = "node_modules/modhost-mod-x";
    const files = { [`${base}/package.json`]: '{"modhost":{"kind":"module","entry":"m.ts"}}', [`${base}/m.ts`]: "" };
    await assert.rejects(found(t, files, "x"), { code: "MODULE_INVALID", message: /publish its JavaScript/ });
  });
});

test("the modules of a folder are listed once, sorted, without other files", async (t) => {
  const folder = await folderOf(t, {
    "mod_b.ts": "",
    "mod_b/index.ts": "",
    "mod_a.cjs": "",
    "c/mod_c.js": "",
    "mod_empty/readme.md": "",
    "helper.ts": "",
    ".mod_hidden.ts": "",
    "mod_types.d.ts": "",
    "other/index.ts": "",
  });
  assert.deepEqual(listModules(folder), ["a", "b", "c"]);
  assert.deepEqual(listModules(join(folder, "none")), []);
});
