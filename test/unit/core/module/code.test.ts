import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createHost } from "#core/index.ts";
import { folderOf, logged, pluginHost, stateOf, write } from "./support.ts";

describe("a module file", () => {
  test("may export a default function, the value of defineModule, named fields next to a function, or either form in CommonJS", async (t) => {
    const { host } = await pluginHost(t, {
      "mod_plain.ts": "export default (module) => module.name;",
      "mod_defined.ts":
        'import { defineModule } from "modhost";\n' + "export default defineModule({ load: (module) => module.name });",
      "mod_named.mjs":
        'export const options = { named_size: { type: "integer", default: 4, describe: "Size." } };\n' +
        'export const depends = ["plain"];\n' +
        'export default (module) => [module.depends("plain"), module.get_option("named_size")];',
      "mod_common.cjs": "module.exports = (module) => module.name;\nmodule.exports.depends = ['defined'];",
      "mod_object.cjs": "module.exports = { load: (module) => module.name, depends: ['common'] };",
      "mod_compiled.cjs":
        'Object.defineProperty(exports, "__esModule", { value: true });\n' +
        "exports.options = { compiled_size: { type: 'integer', default: 4, describe: 'Size.' } };\n" +
        "exports.default = (module) => module.get_option('compiled_size');",
      "mod_compiled_object.cjs":
        "exports.__esModule = true; exports.default = { load: (module) => module.name, depends: ['common'] };",
    });
    assert.equal(host.exports("compiled"), 4, "as compilers to CommonJS write a default export");
    assert.equal(host.exports("compiled_object"), "compiled_object");
    assert.equal(host.exports("plain"), "plain");
    assert.equal(host.exports("mod_defined"), "defined");
    assert.deepEqual(host.exports("named"), ["plain", 4]);
    assert.equal(host.exports("common"), "common");
    assert.equal(host.exports("object"), "object");
    assert.deepEqual(host.modules().find(({ name }) => name === "object")?.depends, ["common"]);
  });

  test("exports a function that is called with the module object and nothing else", async (t) => {
    const { host } = await pluginHost(t, { "mod_greedy.ts": "export default (...given) => given.length;" });
    assert.equal(host.exports("greedy"), 1);
  });

  test("with any other export is refused, with the form to use", async (t) => {
    const running = await pluginHost(t, {
      "mod_none.ts": "export const x = 1;",
      "mod_text.ts": 'export default "text";',
      "mod_empty.cjs": "module.exports = {};",
      "mod_depends.ts": "export const depends = 'http';\nexport default () => {};",
    });
    assert.match(stateOf(running, "none")?.note ?? "", /mod_none\.ts is not a module: it exports x: export a default/);
    assert.match(stateOf(running, "text")?.note ?? "", /it exports default/);
    assert.match(stateOf(running, "empty")?.note ?? "", /no function load: export a default function/);
    assert.match(stateOf(running, "depends")?.note ?? "", /depends must be a list/);
  });
});

describe("code that cannot be evaluated", () => {
  const broken = {
    "mod_throws.ts": "export default () => {};\nconst a: number = 1;\nthrow new Error('thrown ' + a);",
    "mod_syntax.ts": "const a = 1;\n\nfunction( {\n",
    "mod_script.js": "export default () => {};\nlet a;\nlet a;\n",
    "mod_typed.ts": "export default () => {};\nlet a: number;\nlet a: number;\n",
    "mod_enum.ts": "enum A { B }\nexport default () => A.B;",
    "mod_decorated.ts": "import './lib/decorated.ts';\nexport default () => {};",
    "lib/decorated.ts": "const dec: any = (one: any) => one;\nexport class A {\n  @dec a = 1;\n}",
    "mod_object.ts": "export default () => { throw { code: 5, inner: { a: [1] } }; };",
    "mod_missing.ts": 'import "./gone.ts";\nexport default () => {};',
    "mod_deep/index.ts": 'import "./lib/inner.ts";\nexport default () => {};',
    "mod_deep/lib/inner.ts": "\n\n\nthrow new TypeError('inside');",
    "mod with space/package.json": "{}",
    "mod_healthy.ts": "export default () => 'fine';",
  };

  test("is reported once with reason, file and line, and the other modules load", async (t) => {
    const running = await pluginHost(t, broken);
    const expected: Record<string, RegExp> = {
      throws: /^The module throws failed while being imported: thrown 1 \(mod_throws\.ts:3\)$/,
      syntax: /mod_syntax\.ts:3\)$/,
      script: /already been declared \(mod_script\.js:3\)$/,
      typed: /already been declared \(mod_typed\.ts:3\)$/,
      enum: /enum is not supported.*\(mod_enum\.ts:1\)$/,
      decorated: /decorators are not supported, since Node\.js does not run them \(lib\/decorated\.ts:3\)$/,
      object: /: \{ code: 5, inner: \{ a: \[Array\] \} \}$/,
      missing: /Cannot find module .*gone\.ts/,
      deep: /inside \(lib\/inner\.ts:4\)$/,
    };
    for (const [name, note] of Object.entries(expected)) {
      const state = stateOf(running, name);
      assert.equal(state?.status, "failed");
      assert.match(state?.note ?? "", note);
      assert.ok(state?.file?.startsWith(running.plugins.replace(/^\/private/, "")), state?.file);
      assert.doesNotMatch(state?.note ?? "", /\?v=|file:/);
      assert.equal(logged(running, "error").filter(({ module }) => module === name).length, 1);
    }
    assert.equal(running.host.exports("healthy"), "fine");
    assert.equal(running.host.state, "running");
  });

  test("is evaluated again when somebody loads or reloads the module", async (t) => {
    const running = await pluginHost(t, broken);
    await assert.rejects(running.host.load("throws"), { code: "MODULE_FAILED" });
    await write(running.plugins, { "mod_throws.ts": "export default () => 'mended';" });
    await running.host.load("throws");
    assert.equal(running.host.exports("throws"), "mended");
    await write(running.plugins, { "mod_deep/lib/inner.ts": "" });
    await running.host.reload("deep");
    assert.equal(stateOf(running, "deep")?.status, "loaded");
  });
});

describe("a reload evaluates again", () => {
  test("every file in the module's folder, ES and CommonJS", async (t) => {
    const files = (n: number) => ({
      "mod_fresh/index.ts": `import { b } from "./lib/b.ts";\nimport c from "./c.cjs";\nimport { e } from "./e.cjs";\nexport default () => [${n}, b, c, e];`,
      "mod_fresh/lib/b.ts": `export { default as b } from "../deep.mjs";`,
      "mod_fresh/deep.mjs": `export default ${n};`,
      "mod_fresh/c.cjs": `module.exports = require("./d.cjs");`,
      "mod_fresh/d.cjs": `module.exports = ${n};`,
      "mod_fresh/e.cjs": `exports.e = ${n};`,
    });
    const { host, plugins } = await pluginHost(t, files(1));
    assert.deepEqual(host.exports("fresh"), [1, 1, 1, 1]);
    await write(plugins, files(2));
    await host.reload("fresh");
    assert.deepEqual(host.exports("fresh"), [2, 2, 2, 2]);
  });

  test("the files that a single file imports next to itself, but not modules there or packages", async (t) => {
    const counted = (name: string) =>
      `globalThis.counts ??= {};\nexport const n = (globalThis.counts.${name} = (globalThis.counts.${name} ?? 0) + 1);`;
    const { host } = await pluginHost(t, {
      "mod_loose.ts":
        'import * as helper from "./lib/helper.ts";\nimport * as pkg from "pkg";\nimport * as other from "./mod_other.ts";\n' +
        "export default () => [helper.n, pkg.n, other.n];",
      "mod_other.ts": `${counted("other")}\nexport default () => {};`,
      "lib/helper.ts": counted("helper"),
      "node_modules/pkg/package.json": '{"type":"module","main":"index.js"}',
      "node_modules/pkg/index.js": counted("pkg"),
    });
    const [helper = 0, pkg = 0, other = 0] = host.exports<number[]>("loose");
    await host.reload("loose");
    assert.deepEqual(host.exports("loose"), [helper + 1, pkg, other]);
  });

  test("the file after an unload and a load", async (t) => {
    const { host, plugins } = await pluginHost(t, { "mod_a.cjs": "module.exports = () => 1;" });
    await host.unload("a");
    await write(plugins, { "mod_a.cjs": "module.exports = () => 2;" });
    await host.load("a");
    assert.equal(host.exports("a"), 2);
  });
});

test("a file outside of any package imports the running host's own exports as modhost", async (t) => {
  const running = await pluginHost(t, {
    "mod_bare.ts":
      'import { ModhostError } from "modhost";\nimport { formdecode } from "modhost/net/http";\n' +
      'import type { Module } from "modhost/types";\n' +
      "export default (_module: Module) => ({ ModhostError, formdecode });",
    "mod_bad_subpath.ts": 'import "modhost/none";\nexport default () => {};',
    "mod_common.cjs":
      'const { ModhostError } = require("modhost");\nconst { formdecode } = require("modhost/net/http");\n' +
      'const made = require("node:module").createRequire(__filename)("modhost").ModhostError;\n' +
      'module.exports = () => [ModhostError, made, require("./helper.cjs"), typeof formdecode, typeof require("modhost/node").createNode];',
    "helper.cjs": 'module.exports = require("modhost").ModhostError;',
    "mod_bad_require.cjs": 'require("modhost/none");',
  });
  const { ModhostError } = await import("#core/index.ts");
  const own = [ModhostError, ModhostError, ModhostError, "function", "function"];
  assert.deepEqual(running.host.exports("common"), own);
  assert.match(stateOf(running, "bad_require")?.note ?? "", /'\.\/none' is not defined by "exports"/);
  assert.equal(running.host.exports<{ ModhostError: unknown }>("bare").ModhostError, ModhostError);
  assert.match(stateOf(running, "bad_subpath")?.note ?? "", /'\.\/none' is not defined by "exports"/);
});

test("a module can be loaded from a path, a function or a value, without configuration", async (t) => {
  const folder = await folderOf(t, { "mod_hello.ts": "export default (module) => module.get_directory();" });
  const host = createHost({
    config: { modules_enabled: [], data_path: join(folder, "data") },
    cwd: folder,
    listen: false,
    log: false,
    modules: [
      "./mod_hello.ts",
      function mod_named(module) {
        return module.name;
      },
      { name: "mod_value", load: () => 3, depends: ["hello"] },
      () => "nameless",
    ],
  });
  t.after(() => host.stop());
  await host.start();
  assert.equal(host.exports<string>("hello").endsWith(folder.slice(1)), true);
  assert.equal(host.exports("named"), "named");
  assert.equal(host.exports("value"), 3);
  assert.equal(host.exports("inline_4"), "nameless");
});
