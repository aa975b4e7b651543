import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { loadConfig } from "#core/config/index.ts";

const root = mkdtempSync(join(tmpdir(), "modhost-config-"));
after(() => rm(root, { recursive: true }));
let folders = 0;

/** Creates a folder with these files. */
async function folder(files: Record<string, string | Uint8Array>): Promise<string> {
  const path = join(root, `${++folders}`);
  await mkdir(path);
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(path, name)), { recursive: true });
    await writeFile(join(path, name), content);
  }
  return path;
}

const load = (cwd: string, path?: string) => loadConfig({ cwd, path, env: {} });

describe("the search for a config file", () => {
  for (const [name, content] of Object.entries({
    "modhost.config.ts": "const level: string = 'debug'; export default { log_level: level };",
    "modhost.config.js": "export default { log_level: 'debug' };",
    "modhost.config.mjs": "export default () => ({ log_level: 'debug' });",
    "modhost.config.cjs": "module.exports = async () => ({ log_level: 'debug' });",
    "modhost.config.json": '\uFEFF{ "log_level": "debug" }',
    "modhost.config.yaml": "log_level: debug",
    "modhost.config.yml": "log_level: debug",
    ".modhostrc": "log_level: debug",
    ".modhostrc.json": '{ "log_level": "debug" }',
    ".modhostrc.yaml": "log_level: debug",
    ".modhostrc.ts": "export default Promise.resolve({ log_level: 'debug' });",
    ".modhostrc.js": "export default { log_level: 'debug' };",
    ".modhostrc.cjs": "exports.__esModule = true; exports.default = { log_level: 'debug' };",
    "package.json": '{ "modhost": { "log_level": "debug" } }',
  })) {
    test(`reads ${name}`, async () => {
      const cwd = await folder({ [name]: content });
      const config = await load(cwd);
      assert.equal(config.value("log_level"), "debug");
      assert.equal(config.file, join(cwd, name));
      assert.equal(config.directory, cwd);
    });
  }

  test("ends at the folder of the nearest package.json", async () => {
    const cwd = await folder({
      "modhost.config.yaml": "log_level: warn",
      "package/package.json": "{}",
      "package/.modhostrc": "log_level: debug",
      "package/src/deep/file.txt": "",
      "other/package.json": "{}",
      "loose/file.txt": "",
    });
    assert.equal((await load(join(cwd, "package/src/deep"))).value("log_level"), "debug");
    assert.equal((await load(join(cwd, "other"))).file, undefined);
    assert.equal((await load(join(cwd, "loose"))).file, undefined);
  });

  test("does not treat the manifest of a module package as a configuration", async () => {
    const cwd = await folder({ "package.json": '{ "modhost": { "kind": "module", "entry": "./index.js" } }' });
    assert.equal((await load(cwd)).file, undefined);
  });

  test("without a file uses the embedded default, which serves ./data", async () => {
    const cwd = await folder({});
    const config = await load(cwd);
    assert.equal(config.value("plugin_autoload"), true);
    assert.deepEqual(config.value("plugin_paths"), ["./data/modules"]);
    assert.equal(config.raw("http_files_dir"), "./data/www");
    assert.equal(config.value("data_path"), join(cwd, "data"));
    config.check();
  });

  test("finds that an empty file, and one of comments, sets nothing", async () => {
    for (const content of ["", "# log_level: debug\n"]) {
      const config = await load(await folder({ "modhost.config.yaml": content }));
      assert.equal(config.value("log_level"), "info");
      assert.equal(config.value("plugin_autoload"), false);
      assert.equal(config.isEmpty, true);
    }
    assert.equal((await load(await folder({ "modhost.config.yaml": "{}" }))).isEmpty, false);
  });

  test("is omitted with search: false, and the environment is still read", async () => {
    const cwd = await folder({ ".modhostrc": "log_level: debug" });
    const config = await loadConfig({ cwd, search: false, env: { MODHOST_STOP_TIMEOUT: "1m" } });
    assert.deepEqual([config.file, config.value("log_level"), config.value("stop_timeout")], [undefined, "info", 60]);
    assert.equal(config.value("plugin_autoload"), false);
  });

  test("evaluates a changed script again", async () => {
    for (const name of ["modhost.config.mjs", "modhost.config.cjs"]) {
      const export_ = name.endsWith("cjs") ? "module.exports =" : "export default";
      const cwd = await folder({ [name]: `${export_} { stop_timeout: 1 };` });
      assert.equal((await load(cwd)).value("stop_timeout"), 1);
      await writeFile(join(cwd, name), `${export_} { stop_timeout: 2 };`);
      assert.equal((await load(cwd)).value("stop_timeout"), 2, name);
    }
  });
});

describe("a named config file", () => {
  test("takes precedence over the search, and paths are relative to its folder", async () => {
    const cwd = await folder({ ".modhostrc": "log_level: debug", "etc/my.yaml": "log_level: warn" });
    const config = await load(cwd, "etc/my.yaml");
    assert.equal(config.value("log_level"), "warn");
    assert.equal(config.value("data_path"), join(cwd, "etc/data"));
  });

  test("is named in the error if it is missing", async () => {
    const cwd = await folder({});
    await assert.rejects(load(cwd, "none.yaml"), { code: "CONFIG_NOT_FOUND", message: /none\.yaml.*--config/ });
  });

  test("is refused if its kind is unknown", async () => {
    const cwd = await folder({ "my.toml": "a = 1" });
    await assert.rejects(load(cwd, "my.toml"), { code: "CONFIG_UNREADABLE", message: /\.toml/ });
  });
});

describe("an unreadable config file", () => {
  const wrong: [string, string, RegExp][] = [
    ["modhost.config.yaml", "a: 1\nb: [1, 2\nc: 3\n", /modhost\.config\.yaml cannot be read: line \d, column \d+: /],
    ["modhost.config.yaml", "a: 1\na: 2\n", /line 2, column 1: .*unique/],
    ["modhost.config.json", '{\n  "a": 1,\n  b\n}', /line 3, column 3: /],
    ["modhost.config.json", '{\n  "a": 1', /line 2, column \d+: /],
    ["modhost.config.yaml", "- a\n", /it gives a list, but a config is an object/],
    ["modhost.config.mjs", "export const a = 1;", /it gives nothing, but a config/],
    ["modhost.config.mjs", "\n\nthrow new Error('no luck');", /no luck \(modhost\.config\.mjs:3\)/],
    ["modhost.config.mjs", "export default {\n  a: 1,\n  b: }\n", /modhost\.config\.mjs:3/],
    [
      "modhost.config.ts",
      "enum A { b }\nexport default {};",
      /modhost\.config\.ts cannot be read: .*enum.* \(modhost\.config\.ts:1\)/,
    ],
    [".modhostrc.js", "export default () => { throw new Error('inside'); };", /inside \(\.modhostrc\.js:1\)/],
  ];
  test("causes an error without a piece of its text, which may be a secret", async () => {
    const files: [string, string, RegExp][] = [
      ["modhost.config.json", '{"api_tokens": hunter22}', /line 1, column 16: Unexpected token 'h'/],
      ["modhost.config.json", '{"api_tokens":\n  hunter22, "and": "more than ten characters"}', /line 2, column 3: /],
      ["modhost.config.json", "hunter22", /line 1, column \d+: Unexpected token 'h'/],
      [
        "modhost.config.yaml",
        "log_level: info\napi_tokens: [*hunter22]",
        /line 2, column 14: .*begins with \*.*quote it/,
      ],
    ];
    for (const [name, content, message] of files) {
      const error = await load(await folder({ [name]: content })).then(
        () => assert.fail("it was read"),
        (error: Error) => error,
      );
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /unter/);
    }
  });

  test("is refused with the position if it is not UTF-8, because wrong bytes would name other files", async () => {
    const text = "# ok\nhttp_files_dir: ./caf\xe9\n";
    const latin1 = Buffer.from(text, "latin1");
    const utf16 = Buffer.from(text, "utf16le");
    const marked = Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]);
    for (const name of ["modhost.config.yaml", ".modhostrc", "modhost.config.json", "modhost.config.mjs"]) {
      for (const [bytes, message] of [
        [latin1, /line 2, column 22: the file must be UTF-8: here it is in another encoding/],
        [utf16, /line 1, column 2: the file must be UTF-8 text: there is a NUL byte, as in UTF-16/],
        [marked, /line 1, column \d: the file must be UTF-8/],
      ] as const) {
        const cwd = await folder({ [name]: bytes });
        await assert.rejects(load(cwd), { code: "CONFIG_UNREADABLE", message });
        await assert.rejects(load(cwd, name), { code: "CONFIG_UNREADABLE", message });
      }
    }
    const marks = Buffer.from("\uFEFFhttp_files_dir: ./caf\xe9", "utf8");
    assert.match(String((await load(await folder({ ".modhostrc": marks }))).value("http_files_dir")), /caf\xe9$/);
  });

  for (const [name, content, message] of wrong) {
    test(`causes an error with the position and the reason: ${name} with ${JSON.stringify(content.slice(0, 24))}`, async () => {
      const cwd = await folder({ [name]: content });
      await assert.rejects(load(cwd), { code: "CONFIG_UNREADABLE", message });
      await assert.rejects(load(cwd, name), { code: "CONFIG_UNREADABLE", message });
    });
  }
});
