import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { configFrom, createHost, defineConfig, defineModule } from "#core/index.ts";
import { createTestHost } from "#core/testing/index.ts";
import type { Module } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { folderOf, hello, hostOf, stateOf } from "./module/support.ts";

async function isRefused(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const refused = await once(socket, "connect").then(
    () => false,
    ({ code }) => code === "ECONNREFUSED",
  );
  socket.destroy();
  return refused;
}

describe("stopping a host", () => {
  test("finishes open requests while every module is still loaded", async (t) => {
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
    const response = running.fetch("/slow");
    await arrived.promise;
    const other = running.url("/x");
    const stopping = running.host.stop();
    assert.equal(running.host.state, "stopping");
    const { port } = new URL(other);
    await eventually("connections are refused", () => isRefused(Number(port)));
    gate.resolve();
    assert.equal(await (await response).text(), "helped");
    await stopping;
    assert.deepEqual(seen, ["finished", "helper gone"]);
  });

  test("cuts requests that do not end in time", { timeout: 60_000 }, async (t) => {
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
    const response = assert.rejects(running.fetch("/stuck"));
    await arrived.promise;
    await running.host.stop({ timeout: 0.2 });
    await response;
    assert.equal(running.host.state, "stopped");
  });

  test("announces server-stopping, then server-stopped, and then unloads the modules in reverse order", async (t) => {
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

  test("does nothing if it was never started", async () => {
    const host = createHost({ config: {}, log: false });
    await host.stop();
    assert.equal(host.state, "stopped");
  });

  test("during the start waits for the module that is loading, and loads no other", async (t) => {
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

test("during a reload prevents the new instance from becoming active", async (t) => {
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

describe("the modules of a running host", () => {
  test("remove their routes at an unload, and add them at a load", async (t) => {
    const running = await hostOf(t, { http_hello: hello });
    const status = async () => (await running.fetch("/hello")).status;
    await running.host.unload("http_hello");
    assert.equal(await status(), 404);
    await running.host.load("http_hello");
    assert.equal(await status(), 200);
  });

  test("fail to load if a port cannot be opened, and leave nothing behind", async (t) => {
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

  test("finish open requests on the old code, and serve new ones with the new code on the same socket", async (t) => {
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
      const either = Promise.race([running.fetch("/versions").then((response) => response.text()), gate.promise]);
      text = String(generation >= 2 ? await either : await new Promise<void>(setImmediate));
    }
    gate.resolve();
    assert.equal(await (await old).text(), "version 1");
    await reloading;
    assert.deepEqual(running.host.listening(), before);
  });

  test("are changed one operation after another, and only while the host runs", async (t) => {
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

  test("can be loaded from a path", async (t) => {
    const folder = await folderOf(t, { "mod_found.ts": "export default () => 'found';" });
    const running = await hostOf(t, {});
    await running.host.load(join(folder, "mod_found.ts"));
    assert.equal(running.host.exports("found"), "found");
    await running.host.reload("found");
  });
});

test("a configuration can be passed as a value or by its path", async (t) => {
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

test("with search: false only a named config file is read, and variables still count", async (t) => {
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

test("defineConfig and defineModule return their argument, with types", () => {
  const config = defineConfig({ http_ports: [1] });
  assert.deepEqual(config, { http_ports: [1] });
  const definition = { load: () => 1 };
  assert.equal(defineModule(definition), definition);
});

test("a test host that cannot start leaves no folder, and its error names the missing scheme", async (t) => {
  await assert.rejects(createTestHost({ config: { log_level: "loud" } }), { code: "CONFIG_INVALID" });
  const running = await hostOf(t, {});
  assert.throws(() => running.url("/"), /no http port/);
});
