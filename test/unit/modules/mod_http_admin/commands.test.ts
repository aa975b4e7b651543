import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { createHost } from "#core/index.ts";
import type { Change, ModuleState, ServerStatus } from "#core/types.ts";
import { ran } from "#test/unit/core/cli/called.ts";
import { folderOf, pluginHost } from "#test/unit/core/module/support.ts";

const hello = (text: string) => `export default (module) => {
  module.depends("http");
  module.provides("http", { route: { GET: () => ${JSON.stringify(text)} } });
};`;

/** Starts a server with a module, in a folder in which the commands find it. */
async function served(t: TestContext) {
  const config = { modules_enabled: ["http_admin", "http_one"], plugin_autoload: false };
  const running = await pluginHost(t, { "mod_http_one.js": hello("one") }, config);
  const folder = await folderOf(t, { "modhost.config.json": JSON.stringify({ data_path: running.folder }) });
  return { ...running, cwd: folder, run: (...words: string[]) => ran(folder, words) };
}

describe("commands for a running server", () => {
  test("find the server by the configuration, and show its status", async (t) => {
    const { run, folder } = await served(t);
    const { code, stdout } = await run("status", "--json");
    const status = JSON.parse(stdout) as ServerStatus;
    assert.deepEqual([code, status.pid, status.data_path, status.phase], [0, process.pid, folder, "running"]);
    const shown = await run("status", "--no-json");
    assert.match(shown.stdout, new RegExp(`^version +modhost .*process ${process.pid}$`, "m"));
    assert.match(shown.stdout, /^state +running since \d/m);
  });

  test("reload, unload and load a module, and print the duration", async (t) => {
    const { run, plugins, fetch, folder } = await served(t);
    await writeFile(join(plugins, "mod_http_one.js"), hello("two"));
    const reloaded = await run("reload", "http_one", "--no-json");
    assert.match(reloaded.stdout, /^reload http_one: done \(\d+ ms\)\n$/);
    assert.equal(await (await fetch("/one")).text(), "two");
    const unloaded = await run("unload", "http_one", "--json");
    assert.equal((JSON.parse(unloaded.stdout) as Change).result, "done");
    assert.equal((await fetch("/one")).status, 404);
    const loaded = await ran(plugins, ["load", "./mod_http_one.js"], { env: { MODHOST_DATA_PATH: folder } });
    assert.equal(loaded.code, 0, loaded.stderr);
    assert.equal(await (await fetch("/one")).text(), "two");
  });

  test("unload a guard with a warning that names the apps that are now unguarded", async (t) => {
    const modules_enabled = ["http_admin", "http_guard", "http_one"];
    const config = { modules_enabled, plugin_autoload: false, http_guard: { one: { deny: ["127.0.0.1"] } } };
    const { fetch, folder, log, host } = await pluginHost(t, { "mod_http_one.js": hello("one") }, config);
    const cwd = await folderOf(t, { "modhost.config.json": JSON.stringify({ data_path: folder }) });
    assert.equal((await fetch("/one")).status, 403);
    const { stdout, code } = await ran(cwd, ["unload", "http_guard", "--no-json"]);
    const warning = "Without the module http_guard one is unguarded, until it is loaded again";
    assert.match(stdout, new RegExp(`^unload http_guard: done.*\n {2}Warning: ${warning}\\.\n$`));
    assert.equal(code, 0);
    assert.ok(log().some((line) => line.includes(warning)));
    assert.equal((await fetch("/one")).status, 200);
    const other = await ran(cwd, ["unload", "http_one", "--json"]);
    assert.equal((JSON.parse(other.stdout) as Change).warnings, undefined);
    await host.stop();
  });

  for (const [name, files, shown] of [
    [
      "a file that does not compile",
      { "mod_http_one.js": "let a = 1;\nlet a = 2;\n" },
      /mod_http_one\.js:2\n +let a = 2;/,
    ],
    [
      "a file that it imports and that does not compile",
      { "mod_http_one.js": 'import "./part.js";\nexport default () => {};\n', "part.js": "\n\nconst =;\n" },
      /part\.js:3\n +const =;/,
    ],
    [
      "code that throws while it loads",
      { "mod_http_one.js": 'export default () => {\n  throw new Error("no luck");\n};\n' },
      /no luck[\s\S]*mod_http_one\.js:2\n +throw new Error\("no luck"\);/,
    ],
  ] as const) {
    test(`a reload that fails for ${name} shows the line, and the old instance serves`, async (t) => {
      const { run, plugins, fetch } = await served(t);
      for (const [file, text] of Object.entries(files)) await writeFile(join(plugins, file), text);
      const { code, stdout } = await run("reload", "http_one", "--no-json");
      assert.equal(code, 1);
      assert.match(stdout, /^reload http_one: failed\n/);
      assert.match(stdout, shown);
      assert.match(stdout, /The previous state stays in force/);
      assert.equal(await (await fetch("/one")).text(), "one");
    });
  }

  test("a reload of a module that is not loaded is refused without naming a file", async (t) => {
    const { run } = await served(t);
    const { code, stdout } = await run("reload", "nobody", "--no-json");
    assert.deepEqual([code, stdout], [1, "reload nobody: refused\n  The module nobody is not loaded\n"]);
  });

  test("without a server they print where they looked and what to do, and exit with 3", async (t) => {
    const folder = await folderOf(t, { "modhost.config.json": "{}" });
    for (const words of [["status"], ["reload", "x"], ["load", "x"], ["unload", "x"], ["stop"]]) {
      const { code, stderr } = await ran(folder, words);
      assert.equal(code, 3);
      assert.match(
        stderr,
        new RegExp(`No server runs here: there is no socket ${folder}/data/admin\\.sock\\. Start one`),
      );
    }
  });

  test("stop ends the server", async (t) => {
    const { run, host } = await served(t);
    assert.equal((await run("stop")).code, 0);
    await host.ended;
    assert.equal(host.state, "stopped");
  });

  test("with wrong arguments they print how to call them", async (t) => {
    const folder = await folderOf(t, {});
    const wrong = async (...words: string[]) => (await ran(folder, words)).stderr.split("\n")[0];
    assert.equal(await wrong("unload"), "modhost: unload needs NAME: The module's name");
    assert.equal(await wrong("unload", "a", "b"), "modhost: unload takes no argument b");
    assert.equal(await wrong("stop", "--timeout", "soon"), "modhost: --timeout takes a number, not soon");
  });
});

test("stop --config FILE does not stop the server of another config file with the same data folder", async (t) => {
  const text = JSON.stringify({
    modules_enabled: ["http_admin"],
    http_ports: [0],
    https_ports: [],
    admin_port: 0,
    data_path: ".",
  });
  const folder = await folderOf(t, { "one.json": text, "two.json": text });
  const host = createHost({ configPath: join(folder, "one.json"), cwd: folder, env: {}, log: false });
  t.after(() => host.stop());
  await host.start();
  const { code, stderr } = await ran(folder, ["stop", "--config", "two.json"]);
  assert.equal(code, 3);
  assert.ok(stderr.includes(`(process ${process.pid}) runs on ${join(folder, "one.json")}`), stderr);
  assert.equal(host.state, "running");
  assert.equal((await ran(folder, ["stop", "--config", "one.json"])).code, 0);
});

describe("modules, routes and --explain", () => {
  test("show the running server and say so, and use the configuration with --offline", async (t) => {
    const { run, host, plugins } = await served(t);
    await writeFile(join(plugins, "mod_http_late.js"), hello("late"));
    await host.load(join(plugins, "mod_http_late.js"));
    const said =
      /^modhost: asking the running server \(process \d+, .*admin\.sock\); --offline uses the configuration instead\n$/;
    const modules = await run("modules", "--json");
    assert.match(modules.stderr, said);
    const names = (text: string) => (JSON.parse(text) as ModuleState[]).map(({ name }) => name);
    assert.ok(names(modules.stdout).includes("http_late"));
    const routes = await run("routes", "--json");
    assert.match(routes.stderr, said);
    assert.ok((JSON.parse(routes.stdout) as { path: string }[]).some(({ path }) => path === "/late"));
    const explained = await run("routes", "--explain", "GET", "/late", "--no-json");
    assert.match(explained.stdout, /http_late|mod_http_late/);
    const offline = await run("modules", "--offline", "--json");
    assert.equal(offline.stderr, "");
    assert.equal(names(offline.stdout).includes("http_late"), false);
  });
});
