import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { test } from "node:test";
import { createTestHost } from "#core/testing/index.ts";
import type { Module } from "#core/types.ts";
import { folderOf } from "#test/unit/core/module/support.ts";

const hello = (module: Module) => {
  module.depends("http");
  module.provides("http", { route: { "GET /": "hello" } });
};

test("a module can be a path, a function or a definition, and is addressed by its name", async (t) => {
  const file = `export default (module) => { module.depends("http"); module.provides("http", { route: { GET: "file" } }); };`;
  const cwd = await folderOf(t, { "mod_file.js": file });
  await using host = await createTestHost({
    cwd,
    modules: ["./mod_file.js", hello, { name: "mod_http_defined", load: hello }],
  });
  assert.equal((await host.inject("/file")).body, "file");
  assert.equal((await host.inject("/hello/")).body, "hello");
  assert.equal((await host.inject("/defined/")).body, "hello");
  assert.equal(await (await host.fetch("/hello/")).text(), "hello");
});

test("modules that cannot be loaded fail the start with their causes, and nothing stays", async (t) => {
  const cwd = await folderOf(t, { "mod_bad.js": "export default () => {\n  throw new Error('my own');\n};" });
  const needy = (module: Module) => module.depends("nowhere");
  await assert.rejects(createTestHost({ cwd, modules: ["./mod_bad.js", needy, hello] }), ({ message }: Error) => {
    assert.match(message, /bad: .*my own \(mod_bad\.js:2\)/);
    assert.match(message, /needy: .*nowhere/);
    assert.doesNotMatch(message, /hello/);
    assert.match(message, /allow_failed/);
    return true;
  });
  await using host = await createTestHost({ cwd, allow_failed: true, modules: ["./mod_bad.js", hello] });
  assert.equal(host.host.modules().find(({ name }) => name === "bad")?.status, "failed");
  assert.equal((await host.inject("/hello/")).status, 200);
});

test("the log can be read as lines and as values, from debug on", async () => {
  await using host = await createTestHost({
    modules: [
      function talker(module) {
        module.log.debug("quiet %d", 1);
        module.log.warn('a "word"');
      },
    ],
  });
  assert.deepEqual(
    host.logged("warn").map(({ module, msg }) => [module, msg]),
    [["talker", 'a "word"']],
  );
  assert.ok(host.logged().some(({ level, msg }) => level === "debug" && msg === "quiet 1"));
  assert.equal(host.log().length, host.logged().length);
});

test("modules are loaded, reloaded and unloaded by path and name", async (t) => {
  const cwd = await folderOf(t, {
    "mod_file.js": `export default (module) => {
      module.depends("http");
      module.provides("http", { route: { GET: String(module.reloading) } });
    };`,
  });
  await using host = await createTestHost({ cwd });
  await host.load("./mod_file.js");
  assert.equal((await host.inject("/file")).body, "false");
  await host.reload("file");
  assert.equal((await host.inject("/file")).body, "true");
  await host.unload("file");
  assert.equal((await host.inject("/file")).status, 404);
  await assert.rejects(host.unload("file"), { code: "MODULE_NOT_LOADED" });
});

test("stop removes the folder", async () => {
  const host = await createTestHost();
  await stat(host.folder);
  await host.stop();
  await assert.rejects(stat(host.folder), { code: "ENOENT" });
});
