import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Program } from "./spawned.ts";

interface Made {
  readonly name: string;
  readonly app: string;
  readonly files: readonly string[];
  readonly next: readonly string[];
}

async function make(program: Program, ...args: string[]): Promise<Made & { paths: string[] }> {
  const { code, stdout, stderr } = await program.call(["new", ...args]);
  assert.equal(code, 0, stderr);
  const made: Made = JSON.parse(stdout);
  return { ...made, paths: made.files.map((file) => file.slice(program.folder.length + 1)) };
}

const read = (program: Program, path: string) => readFile(join(program.folder, path), "utf8");

describe("modhost new NAME", () => {
  test("creates a package in TypeScript that builds what npm gets", async () => {
    await using program = await Program.in({});
    const { app, paths, next } = await make(program, "http_hello");
    assert.equal(app, "hello");
    assert.deepEqual(
      paths,
      ["package.json", "tsconfig.json", "mod_http_hello.ts", "mod_http_hello.test.ts", "README.md", ".gitignore"].map(
        (file) => join("mod_http_hello", file),
      ),
    );
    assert.deepEqual(next.slice(-4), ["cd mod_http_hello", "npm install", "npm test", "npm start"]);
    const manifest = JSON.parse(await read(program, "mod_http_hello/package.json"));
    const own = JSON.parse(await readFile(new URL("../../../../package.json", import.meta.url), "utf8"));
    assert.equal(manifest.name, "modhost-mod-http_hello");
    assert.deepEqual(manifest.modhost, {
      kind: "module",
      entry: "./dist/mod_http_hello.js",
      host: `^${own.version}`,
    });
    assert.deepEqual(manifest.peerDependencies, { modhost: `^${own.version}` });
    assert.deepEqual(manifest.engines, own.engines);
    assert.match(manifest.devDependencies.typescript, /^\^\d/);
    for (const path of paths) assert.doesNotMatch(await read(program, path), /\b(NAME|APP|EXT|PACKAGE)\b|NAME_/);
  });

  test("creates a package that depends on the clone that created it", async () => {
    await using program = await Program.in({});
    await make(program, "hello");
    const { devDependencies, scripts } = JSON.parse(await read(program, "mod_hello/package.json"));
    const [, path = ""] = /^file:(.*)$/.exec(devDependencies.modhost) ?? [];
    const clone = fileURLToPath(new URL("../../../../package.json", import.meta.url));
    assert.equal(join(program.folder, "mod_hello", path, "package.json"), clone);
    assert.equal(scripts.pretest, `node ${path}/config/build/fresh.mjs --declarations`);
    assert.ok(existsSync(join(program.folder, "mod_hello", path, "config/build/fresh.mjs")));
    assert.equal(scripts.prebuild, scripts.pretest);
  });

  test("creates a package in JavaScript that needs no build, with --js", async () => {
    await using program = await Program.in({});
    const { paths } = await make(program, "hello", "--js");
    assert.ok(paths.includes(join("mod_hello", "mod_hello.js")));
    assert.ok(!paths.some((path) => path.endsWith(".ts") || path.endsWith("tsconfig.json")));
    const { modhost, scripts } = JSON.parse(await read(program, "mod_hello/package.json"));
    assert.equal(modhost.entry, "./mod_hello.js");
    assert.equal(scripts.build, undefined);
  });

  test("accepts names of files and packages as the module's name", async () => {
    await using program = await Program.in({});
    assert.equal((await make(program, "mod_one")).name, "one");
    assert.equal((await make(program, "modhost-mod-two")).name, "two");
    assert.equal((await make(program, "mod_mod_three")).name, "three");
  });

  test("prints the files that it created and the next commands", async () => {
    await using program = await Program.in({});
    const { stdout } = await program.call(["new", "hello", "--no-json"]);
    assert.match(stdout, /^Created the module hello:\n {2}mod_hello\/package\.json\n/);
    assert.match(stdout, /\nNext:\n(.*\n)* {2}npm start\n$/);
  });
});

describe("modhost new NAME --in FOLDER", () => {
  for (const [flags, file] of [
    [[], "mod_hello.ts"],
    [["--js"], "mod_hello.js"],
  ] as const) {
    test(`creates ${file}, which serves at once`, async () => {
      await using program = await Program.in({
        "modhost.config.yaml": "plugin_paths: [plugins]\nmodules_enabled: [http, hello]\nhello_greeting: Servus\n",
      });
      const { paths, next } = await make(program, "hello", "--in", "plugins", ...flags);
      assert.deepEqual(paths, [join("plugins", file)]);
      assert.match(next.join("\n"), new RegExp(`run \\./plugins/${file}\ncurl http://localhost:5280/hello/$`));
      const { started, kill, ended } = await program.serve(["run"]);
      const [url] = started.apps.find(({ name }) => name === "hello")?.urls ?? [];
      assert.equal(await (await fetch(`${url}/greet/Ada`)).text(), "Servus, Ada!\n");
      assert.equal(await (await fetch(`${url}/`)).text(), "Servus, world!\n");
      kill("SIGTERM");
      assert.equal((await ended).code, 0);
    });
  }

  test("creates an .mjs file with --js in a CommonJS package, and refuses TypeScript there", async () => {
    await using program = await Program.in({ "package.json": '{ "type": "commonjs" }' });
    assert.deepEqual((await make(program, "hello", "--in", "plugins", "--js")).paths, ["plugins/mod_hello.mjs"]);
    const { code, stderr } = await program.call(["new", "other", "--in", "plugins"]);
    assert.equal(code, 2);
    assert.match(stderr, /set "type": "module" in .*package\.json, or add --js/);
  });
});

describe("modhost new refuses", () => {
  for (const [args, message] of [
    [[], /takes one argument, the module's name/],
    [["one", "two"], /takes one argument/],
    [["Foo-Bar"], /Foo-Bar is not a valid module name.*did you mean foo_bar\?/],
    [["../up"], /not a valid module name.*did you mean up\?/],
    [["mod_"], /not a valid module name/],
    [["http_"], /not a valid module name/],
    [["http_files"], /http_files comes with modhost/],
  ] as const) {
    test(`new ${args.join(" ")}`, async () => {
      await using program = await Program.in({});
      const { code, stderr, stdout } = await program.call(["new", ...args]);
      assert.deepEqual([code, stdout], [2, ""]);
      assert.match(stderr, message);
    });
  }

  test("to overwrite an existing folder or module", async () => {
    await using program = await Program.in({ "mod_taken/own.txt": "mine", "plugins/mod_hello.cjs": "mine" });
    for (const args of [["taken"], ["taken", "--in", "."], ["hello", "--in", "plugins"]]) {
      const { code, stderr } = await program.call(["new", ...args]);
      assert.equal(code, 2);
      assert.match(stderr, /already exists: choose another name, or remove it/);
    }
    assert.equal(await read(program, "plugins/mod_hello.cjs"), "mine");
    assert.ok(!existsSync(join(program.folder, "mod_taken/package.json")));
  });
});
