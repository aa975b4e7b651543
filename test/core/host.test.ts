import assert from "node:assert/strict";
import { once } from "node:events";
import { readdir, stat } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { configFrom, createHost, defineConfig, defineModule, type GivenModule } from "../../core/index.ts";
import { createTestHost } from "../../core/testing/index.ts";
import type { Module } from "../../core/types.ts";
import { folderOf, hostOf, logged, stateOf } from "./module/support.ts";

const hello = (module: Module) => {
  module.depends("http");
  module.provides("http", { route: { GET: () => "hello" } });
};

describe("start", () => {
  test("loads, opens the ports, and serves; stop closes everything", async (t) => {
    const running = await hostOf(t, { http_hello: hello });
    assert.equal(running.host.state, "running");
    assert.equal(await (await running.fetch("/hello")).text(), "hello");
    const url = running.url("/hello");
    await running.stop();
    assert.equal(running.host.state, "stopped");
    assert.deepEqual(running.host.modules(), []);
    assert.deepEqual(running.host.listening(), []);
    await assert.rejects(fetch(url));
    await assert.rejects(stat(running.folder), { code: "ENOENT" });
  });

  test("is refused for a wrong value, with all that is wrong, before anything is loaded", async (t) => {
    const seen: string[] = [];
    const running = hostOf(
      t,
      {
        strict: {
          name: "strict",
          options: { strict_size: { type: "integer", min: 1, describe: "Size." } },
          load: () => void seen.push("loaded"),
        },
      },
      { config: { strict_size: 0, log_level: "loud", stop_timeout: "never" } },
    );
    await assert.rejects(running, (error: Error & { code: string }) => {
      assert.equal(error.code, "CONFIG_INVALID");
      for (const part of [
        /strict_size is 0, but it must be an integer from 1/,
        /log_level is "loud"/,
        /stop_timeout/,
      ]) {
        assert.match(error.message, part);
      }
      return true;
    });
    assert.deepEqual(seen, []);
  });

  test("that is refused for a wrong value tells of misspelt options, too", async (t) => {
    const lines: string[] = [];
    const host = createHost({
      config: { modules_enabled: ["http"], http_port: [0], log_level: "loud", of_a_module_that_is_not_there: 1 },
      cwd: await folderOf(t, {}),
      log: { level: "warn", destination: { write: (line: string) => lines.push(line) } },
    });
    await assert.rejects(host.start(), { code: "CONFIG_INVALID" });
    assert.match(lines.join(), /Nothing reads the option http_port: is http_ports meant\?/);
    assert.doesNotMatch(lines.join(), /not_there/);
  });

  test("makes a certificate of its own only where HTTPS has a port", async (t) => {
    for (const https_ports of [[], [0]]) {
      const running = await hostOf(t, { http_hello: hello }, { config: { https_ports } });
      const made = await stat(join(running.folder, "certs", "self-signed.key")).catch(() => undefined);
      assert.equal(made !== undefined, https_ports.length > 0);
      assert.equal(running.host.listening().filter(({ scheme }) => scheme === "https").length, https_ports.length);
      await running.stop();
    }
  });

  test("is refused when a port is taken, if it can be before anything is loaded: nothing stays open", async (t) => {
    const blocker = createServer().listen(0, "127.0.0.1");
    await once(blocker, "listening");
    t.after(() => blocker.close());
    const { port } = blocker.address() as { port: number };
    // Of `own` the host knows no port before the module is loaded.
    for (const [taken, expected] of [
      [{ http_ports: [0, port], https_ports: [0] }, []],
      [{ http_ports: [0], https_ports: [0, port], https_interfaces: ["*"] }, []],
      [{ http_ports: [0], https_ports: [], own_ports: [port] }, ["load", "unload"]],
    ] as const) {
      const seen: string[] = [];
      const cwd = await folderOf(t, {});
      const host = createHost({
        config: { modules_enabled: ["http"], http_interfaces: ["127.0.0.1"], own_interfaces: ["127.0.0.1"], ...taken },
        cwd,
        log: false,
        modules: [
          {
            name: "http_hello",
            load(module) {
              seen.push("load");
              hello(module);
              module.provides("net", { name: "own", onconnect: (socket) => socket.destroy() });
              module.ready = () => void seen.push("ready");
              module.unload = () => void seen.push("unload");
            },
          },
        ],
      });
      await assert.rejects(host.start(), { code: "PORT_TAKEN", message: /_ports/ });
      assert.equal(host.state, "stopped");
      assert.deepEqual(host.listening(), []);
      assert.deepEqual(host.modules(), []);
      assert.deepEqual(seen, expected);
      assert.deepEqual(await readdir(cwd), [], "no certificate is made");
    }
  });

  test("goes on without a module that fails", async (t) => {
    const running = await hostOf(t, {
      http_hello: hello,
      broken() {
        throw new Error("broken");
      },
    });
    assert.equal(stateOf(running, "broken")?.status, "failed");
    assert.equal((await running.fetch("/hello")).status, 200);
  });

  test("with listen false loads everything, opens nothing and calls no ready", async (t) => {
    const seen: string[] = [];
    const running = await hostOf(
      t,
      {
        http_hello(module) {
          hello(module);
          module.ready = () => void seen.push("ready");
        },
      },
      { listen: false },
    );
    assert.equal(stateOf(running, "http_hello")?.status, "loaded");
    assert.deepEqual(running.host.listening(), []);
    assert.deepEqual(seen, []);
    await assert.rejects(stat(join(running.folder, "certs")), { code: "ENOENT" });
  });

  test("warns of options that nobody reads, with the nearest known name", async (t) => {
    const running = await hostOf(
      t,
      { asks: (module) => module.get_option("asked_for") },
      { config: { modules_enable: [], asked_for: 1 } },
    );
    const warnings = logged(running, "warn").map(({ msg }) => msg);
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? "", /modules_enable: is modules_enabled meant/);
  });

  test("happens once", async (t) => {
    const running = await hostOf(t, {});
    await assert.rejects(running.host.start(), /started before/);
    assert.throws(() => createHost().config, /call start\(\) first/);
  });
});

describe("stop", () => {
  test("finishes the requests in flight while every module is still there", async (t) => {
    const gate = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const seen: string[] = [];
    const running = await hostOf(t, {
      http_slow(module) {
        module.depends("http");
        const handler = async () => {
          arrived.resolve();
          await gate.promise;
          return String(module.depends("helper"));
        };
        module.provides("http", { route: { GET: handler } });
      },
      helper(module) {
        module.unload = () => void seen.push("helper gone");
        return "helped";
      },
      observer: (module) => module.hook("http-finished", () => void seen.push("finished")),
    });
    const answer = running.fetch("/slow");
    await arrived.promise;
    const other = running.url("/x");
    const stopping = running.host.stop();
    assert.equal(running.host.state, "stopping");
    const { port } = new URL(other);
    const late = connect(Number(port), "127.0.0.1");
    await assert.rejects(once(late, "connect"), { code: "ECONNREFUSED" });
    gate.resolve();
    assert.equal(await (await answer).text(), "helped");
    await stopping;
    assert.deepEqual(seen, ["finished", "helper gone"]);
  });

  test("is bounded: what does not end is cut", { timeout: 5000 }, async (t) => {
    const arrived = Promise.withResolvers<void>();
    const running = await hostOf(t, {
      http_stuck(module) {
        module.depends("http");
        const handler = () => {
          arrived.resolve();
          return new Promise<string>(() => {});
        };
        module.provides("http", { route: { GET: handler } });
        module.unload = () => new Promise(() => {});
      },
    });
    const answer = assert.rejects(running.fetch("/stuck"));
    await arrived.promise;
    await running.host.stop({ timeout: 0.2 });
    await answer;
    assert.equal(running.host.state, "stopped");
  });

  test("tells server-stopping first, then server-stopped, then unloads last first", async (t) => {
    const seen: string[] = [];
    const leaving = (module: Module) => {
      module.unload = () => void seen.push(module.name);
    };
    const running = await hostOf(t, {
      first(module) {
        leaving(module);
        module.hook("server-stopping", () => void seen.push(`stopping ${running.host.state}`));
        module.hook("server-stopped", () => void seen.push("stopped"));
      },
      second(module) {
        leaving(module);
        module.depends("third");
      },
      third: leaving,
    });
    await Promise.all([running.host.stop(), running.host.stop()]);
    assert.deepEqual(seen, ["stopping stopping", "stopped", "second", "third", "first"]);
  });

  test("of a host that was never started does nothing", async () => {
    const host = createHost({ config: {}, log: false });
    await host.stop();
    assert.equal(host.state, "stopped");
  });

  test("during the start waits for the module that is being loaded, and loads no other", async (t) => {
    const gate = Promise.withResolvers<void>();
    const entered = Promise.withResolvers<void>();
    const seen: string[] = [];
    const host = createHost({
      config: { modules_enabled: [], data_path: "./data" },
      cwd: await folderOf(t, {}),
      log: false,
      modules: [
        {
          name: "slow",
          load: async (module) => {
            entered.resolve();
            module.unload = () => void seen.push("unloaded");
            await gate.promise;
          },
        },
        { name: "next", load: () => void seen.push("next loaded") },
      ],
    });
    const starting = host.start();
    await entered.promise;
    const stopping = host.stop();
    gate.resolve();
    await Promise.all([starting, stopping]);
    assert.deepEqual(seen, ["unloaded"]);
    assert.equal(host.state, "stopped");
  });
});

test("paths that are loaded count from cwd, also the folder itself", async (t) => {
  const cwd = await folderOf(t, { "index.mjs": "export default function here() {}" });
  const elsewhere = await folderOf(t, {});
  for (const path of [".", "./", "./index.mjs"]) {
    const host = createHost({ config: configFrom({ modules_enabled: [] }, elsewhere), cwd, log: false, tls: false });
    t.after(() => host.stop());
    await host.start();
    await host.load(path);
    assert.equal(host.modules().length, 1, path);
    await host.stop();
  }
});

test("a stop during a reload keeps the new code from coming to life", async (t) => {
  const gate = Promise.withResolvers<void>();
  const entered = Promise.withResolvers<void>();
  const seen: string[] = [];
  let generation = 0;
  const running = await hostOf(t, {
    async slow(module) {
      const own = ++generation;
      module.ready = () => void seen.push(`ready ${own}`);
      module.unload = () => void seen.push(`unload ${own}`);
      if (own === 1) return;
      entered.resolve();
      await gate.promise;
    },
  });
  const reloading = assert.rejects(running.host.reload("slow"), /stopping/);
  await entered.promise;
  await running.host.stop({ timeout: 0.05 });
  gate.resolve();
  await reloading;
  assert.deepEqual(seen, ["ready 1", "unload 1"]);
});

describe("modules while the host runs", () => {
  test("a module's routes go with unload and come with load", async (t) => {
    const running = await hostOf(t, { http_hello: hello });
    const status = async () => (await running.fetch("/hello")).status;
    await running.host.unload("http_hello");
    assert.equal(await status(), 404);
    await running.host.load("http_hello");
    assert.equal(await status(), 200);
  });

  test("a port that cannot be opened fails the load, and nothing of it stays", async (t) => {
    const blocker = createServer().listen(0, "127.0.0.1");
    await once(blocker, "listening");
    t.after(() => blocker.close());
    const { port } = blocker.address() as { port: number };
    let ports: number[] = [];
    const running = await hostOf(t, {
      service(module) {
        const net = { name: "service", default_ports: ports, default_interfaces: ["127.0.0.1"] };
        module.provides("net", { ...net, onconnect: (socket) => void socket.end("hello") });
      },
    });
    await running.host.unload("service");
    ports = [port];
    await assert.rejects(running.host.load("service"), { code: "PORT_TAKEN", message: /service_ports/ });
    assert.equal(stateOf(running, "service")?.status, "failed");
    ports = [0];
    await running.host.reload("service");
    assert.equal(stateOf(running, "service")?.status, "loaded");
    const socket = connect(running.host.listening()[0]?.port ?? 0, "127.0.0.1");
    const [text] = (await once(socket, "data")) as [Buffer];
    assert.equal(text.toString(), "hello");
  });

  test("requests in flight end on the old code, new ones are answered by the new, on the same socket", async (t) => {
    const gate = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    let generation = 0;
    const running = await hostOf(t, {
      http_versions(module) {
        module.depends("http");
        const own = ++generation;
        const handler = async () => {
          if (own === 1) {
            arrived.resolve();
            await gate.promise;
          }
          return `version ${own}`;
        };
        module.provides("http", { route: { GET: handler } });
      },
    });
    generation = 0;
    await running.host.reload("http_versions");
    const before = running.host.listening();
    const old = running.fetch("/versions");
    await arrived.promise;
    const reloading = running.host.reload("http_versions");
    let text = "";
    while (text !== "version 2") {
      const answer = Promise.race([running.fetch("/versions").then((response) => response.text()), gate.promise]);
      text = String(generation >= 2 ? await answer : await new Promise<void>(setImmediate));
    }
    gate.resolve();
    assert.equal(await (await old).text(), "version 1");
    await reloading;
    assert.deepEqual(running.host.listening(), before);
  });

  test("operations run one after another, and only while the host runs", async (t) => {
    const seen: string[] = [];
    const running = await hostOf(t, {
      async slow(module) {
        seen.push("begin");
        await new Promise(setImmediate);
        seen.push("end");
        module.unload = () => void seen.push("unload");
      },
    });
    seen.length = 0;
    await Promise.all([running.host.reload("slow"), running.host.unload("slow"), running.host.load("slow")]);
    assert.deepEqual(seen, ["begin", "end", "unload", "unload", "begin", "end"]);
    await running.host.stop();
    await assert.rejects(running.host.load("slow"), /it is stopped/);
  });

  test("a module is loaded from a path", async (t) => {
    const folder = await folderOf(t, { "mod_found.ts": "export default () => 'found';" });
    const running = await hostOf(t, {});
    await running.host.load(join(folder, "mod_found.ts"));
    assert.equal(running.host.exports("found"), "found");
    await running.host.reload("found");
  });
});

test("a configuration may be handed over, or named", async (t) => {
  const folder = await folderOf(t, { "here.json": '{"modules_enabled": [], "size": 1, "data_path": "./d"}' });
  const named = createHost({
    configPath: "here.json",
    cwd: folder,
    env: { MODHOST_SIZE: "2" },
    log: false,
    listen: false,
  });
  await named.start();
  t.after(() => named.stop());
  assert.equal(named.config.file, join(folder, "here.json"));
  assert.equal(named.config.raw("size"), 2);
  const config = configFrom({ modules_enabled: [] }, folder);
  const handed = createHost({ config, log: false, listen: false });
  await handed.start();
  t.after(() => handed.stop());
  assert.equal(handed.config, config);
});

test("with search: false no config file is read but a named one, and variables still count", async (t) => {
  const folder = await folderOf(t, {
    "modhost.config.json": '{"modules_enabled": ["nowhere"]}',
    "named.json": '{"modules_enabled": [], "log_level": "warn"}',
  });
  const env = { MODHOST_MODULES_ENABLED: "" };
  for (const [configPath, file, level] of [
    [undefined, undefined, "info"],
    ["named.json", join(folder, "named.json"), "warn"],
  ]) {
    const host = createHost({ search: false, configPath, cwd: folder, env, log: false, listen: false });
    await host.start();
    t.after(() => host.stop());
    assert.equal(host.config.file, file);
    assert.equal(host.config.value("log_level"), level);
    assert.deepEqual(host.modules(), []);
  }
});

test("defineConfig and defineModule give types, and the value itself", () => {
  const config = defineConfig({ http_ports: [1] });
  assert.deepEqual(config, { http_ports: [1] });
  const definition = { load: () => 1 };
  assert.equal(defineModule(definition), definition);
});

test("a test host that cannot start leaves no folder, and says which scheme is missing", async (t) => {
  await assert.rejects(createTestHost({ config: { log_level: "loud" } }), { code: "CONFIG_INVALID" });
  const running = await hostOf(t, {});
  assert.throws(() => running.url("/"), /no http port/);
});

test("a module that is handed over without a name stops the start, and its place is named", async () => {
  const nameless = { load: () => undefined } as unknown as GivenModule;
  const host = createHost({ config: { modules_enabled: [] }, modules: [() => undefined, nameless], log: false });
  await assert.rejects(host.start(), {
    code: "MODULE_INVALID",
    message: /^modules\[1\] .*write \{ name: "hello", load \}/,
  });
});

test("two modules of one name stop the start, and both are named", async () => {
  const hello = { name: "hello", load: () => undefined };
  const host = createHost({
    config: { modules_enabled: [] },
    modules: [hello, { ...hello, name: "mod_hello" }],
    log: false,
  });
  await assert.rejects(host.start(), { code: "MODULE_INVALID", message: /called hello, too: rename one/ });
});
