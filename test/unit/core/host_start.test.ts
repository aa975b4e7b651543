import assert from "node:assert/strict";
import { once } from "node:events";
import { readdir, stat } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createHost } from "#core/index.ts";
import { folderOf, hello, hostOf, logged, stateOf } from "./module/support.ts";

describe("starting a host", () => {
  test("loads modules, opens the ports and serves, until stop closes everything", async (t) => {
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

  test("is refused for wrong values, all of which are listed, before anything is loaded", async (t) => {
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

  test("is refused for a wrong value, and the error also names misspelt options", async (t) => {
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

  test("creates a self-signed certificate only if HTTPS has a port", async (t) => {
    for (const https_ports of [[], [0]]) {
      const running = await hostOf(t, { http_hello: hello }, { config: { https_ports } });
      const made = await stat(join(running.folder, "certs", "self-signed.key")).catch(() => undefined);
      assert.equal(made !== undefined, https_ports.length > 0);
      assert.equal(running.host.listening().filter(({ scheme }) => scheme === "https").length, https_ports.length);
      await running.stop();
    }
  });

  test("is refused for a taken port, before anything is loaded if possible, and leaves nothing open", async (t) => {
    const blocker = createServer().listen(0, "127.0.0.1");
    await once(blocker, "listening");
    t.after(() => blocker.close());
    const { port } = blocker.address() as { port: number };
    // The host does not know the port of `own` before its module is loaded.
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

  test("continues without a module that fails", async (t) => {
    const running = await hostOf(t, {
      http_hello: hello,
      broken() {
        throw new Error("broken");
      },
    });
    assert.equal(stateOf(running, "broken")?.status, "failed");
    assert.equal((await running.fetch("/hello")).status, 200);
  });

  test("with listen: false loads everything, opens no port and does not call ready", async (t) => {
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

  test("warns of options that no module reads, with the nearest known name", async (t) => {
    const running = await hostOf(
      t,
      { asks: (module) => module.get_option("requested") },
      { config: { modules_enable: [], requested: 1 } },
    );
    const warnings = logged(running, "warn").map(({ msg }) => msg);
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? "", /modules_enable: is modules_enabled meant/);
  });

  test("is possible only once", async (t) => {
    const running = await hostOf(t, {});
    await assert.rejects(running.host.start(), /already started/);
    assert.throws(() => createHost().config, /call start\(\) first/);
  });
});
