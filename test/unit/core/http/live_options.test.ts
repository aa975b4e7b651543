/** Options of HTTP that change while it serves: at once, and whoever is connected stays connected. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { WebSocket } from "ws";
import type { Module } from "#core/types.ts";
import { reconfigured } from "#test/unit/core/operations/reconfigured.ts";

/** An app that counts its loads, echoes on a websocket, and streams a second piece when it is asked to. */
function echo() {
  const seen = { loads: 0 };
  const load = (module: Module) => {
    seen.loads += 1;
    module.depends("http");
    const more = Promise.withResolvers<void>();
    module.provides("http", {
      route: {
        "GET /": () => `load ${seen.loads}`,
        "POST /": ({ request }) => `${request.body.length}`,
        "GET /stream": async function* () {
          yield "first";
          await more.promise;
          yield "second";
        },
        "GET /more": () => {
          more.resolve();
          return "sent";
        },
        "WS /ws": async (event) => {
          const socket = event.accept();
          for await (const message of socket) await socket.send(message);
        },
      },
    });
  };
  return { seen, module: { name: "http_echo", load } };
}

async function answer(socket: Socket, request: string): Promise<string> {
  socket.write(request);
  const [data] = (await once(socket, "data")) as [Buffer];
  return data.toString();
}

describe("an option of HTTP that changes", { concurrency: 4 }, () => {
  test("exchanges nobody, and streams, websockets and connections go on", async () => {
    const app = echo();
    await using server = await reconfigured({}, [app.module]);
    const at = `127.0.0.1:${server.port()}`;
    const stream = (await fetch(`http://${at}/echo/stream`)).body?.getReader();
    const read = async () => new TextDecoder().decode((await stream?.read())?.value);
    assert.equal(await read(), "first");
    const websocket = new WebSocket(`ws://${at}/echo/ws`);
    await once(websocket, "open");
    const kept = connect(server.port(), "127.0.0.1");
    assert.match(await answer(kept, "GET /echo/ HTTP/1.1\r\nHost: a\r\n\r\n"), /load 1/);

    const plan = await server.apply({
      http_max_content_size: 10,
      http_idle_timeout: 50,
      http_progress_timeout: 20,
      http_max_header_size: 2048,
      http_websocket_max_message_size: 100,
      http_default_cors_enabled: true,
      http_paths: { echo: "/other" },
      unload_grace: 3,
    });
    assert.deepEqual(
      plan.modules.map(({ action, module }) => [action, module]),
      [["tell", "http"]],
    );
    assert.equal(app.seen.loads, 1);
    websocket.send("still here");
    assert.equal(String((await once(websocket, "message"))[0]), "still here");
    assert.match(await answer(kept, "GET /other/ HTTP/1.1\r\nHost: a\r\n\r\n"), /load 1/);
    assert.match(await answer(kept, "GET /echo/ HTTP/1.1\r\nHost: a\r\n\r\n"), /^HTTP\/1\.1 404/);
    const refused = await fetch(`http://${at}/other/`, { method: "POST", body: "more than ten bytes" });
    assert.equal(refused.status, 413);
    const readable = await fetch(`http://${at}/other/`, { headers: { origin: "http://elsewhere.test" } });
    assert.equal(readable.headers.get("access-control-allow-origin"), "*");
    const long = await fetch(`http://${at}/other/`, { headers: { "x-long": "x".repeat(3000) } });
    assert.equal(long.status, 431);
    await fetch(`http://${at}/other/more`);
    assert.equal(await read(), "second");
    websocket.terminate();
    kept.destroy();
  });

  test("leaves the figures of connections as they are: open ones stay open, and none is forgotten", async () => {
    const values = { modules_enabled: ["http", "http_openmetrics"] };
    await using server = await reconfigured(values, [echo().module]);
    const kept = connect(server.port(), "127.0.0.1");
    assert.match(await answer(kept, "GET /echo/ HTTP/1.1\r\nHost: a\r\n\r\n"), /load 1/);
    const figures = async () => {
      const asked = await fetch(`http://127.0.0.1:${server.port()}/metrics`, { headers: { connection: "close" } });
      const text = await asked.text();
      const lines = text.split("\n");
      const value = (name: string) =>
        Number(lines.find((line) => line.startsWith(`modhost_http_${name} `))?.split(" ")[1]);
      return { open: value("open_connections"), all: value('connections_total{scheme="http"}') };
    };
    const before = await figures();
    await server.apply({ ...values, http_idle_timeout: 50 });
    const after = await figures();
    assert.ok(after.all > before.all, `${before.all} connections before, ${after.all} after`);
    assert.ok(after.open >= 2, `${after.open} are open: the one that was, and the one that asks`);
    // A reload exchanges the listeners: what the former ones counted goes on, once, also when their last connection is gone.
    await server.host.reload("http");
    kept.destroy();
    let [again, asked] = [await figures(), 1];
    for (; again.open > 1 && asked < 1000; asked += 1) again = await figures();
    assert.equal(again.open, 1);
    assert.equal(again.all, after.all + asked);
  });

  test("is refused by HTTP itself when it is wrong, and everything stays", async () => {
    const app = echo();
    const hosts = { "a.test": {}, "b.test": {} };
    await using server = await reconfigured({ hosts, http_default_host: "a.test" }, [app.module]);
    const before = server.host.config;
    await assert.rejects(server.apply({ hosts, http_default_host: "c.test", http_paths: { echo: "/x" } }), {
      code: "CONFIG_NOT_APPLIED",
      message: /http_default_host is "c.test", but it must be one of hosts/,
    });
    assert.equal(server.host.config, before);
    assert.match(await server.get("/echo"), /^load/);
    const plan = await server.apply({ hosts, http_default_host: "b.test" });
    assert.deepEqual(
      plan.modules.map(({ action, module }) => [action, module]),
      [["tell", "http"]],
    );
  });

  test("puts other middleware before the apps, at once", async () => {
    const app = echo();
    await using server = await reconfigured({}, [app.module]);
    const source = (name: string) =>
      `export default () => async (context, next) => { await next(); context.set("x-by", "${name}"); };`;
    await writeFile(join(server.folder, "one.mjs"), source("one"));
    await writeFile(join(server.folder, "two.mjs"), source("two"));
    const by = async () => (await fetch(`http://127.0.0.1:${server.port()}/echo/`)).headers.get("x-by");
    assert.equal(await by(), null);
    await server.apply({ http_middleware: ["./one.mjs"] });
    assert.equal(await by(), "one");
    await assert.rejects(server.apply({ http_middleware: ["./gone.mjs"] }), /http_middleware\[0\]/);
    assert.equal(await by(), "one");
    await server.apply({ http_middleware: ["./two.mjs"] });
    assert.equal(await by(), "two");
    await server.apply({});
    assert.equal(await by(), null);
    assert.equal(app.seen.loads, 1);
  });

  test("serves hosts that have come, without a new instance of HTTP", async () => {
    await using server = await reconfigured({ hosts: { "a.test": {} } }, [echo().module]);
    const plan = await server.apply({ hosts: { "a.test": {}, "b.test": {} } });
    assert.deepEqual(
      plan.modules.map(({ action, module, host }) => [action, module, host]),
      [
        ["load", "http_echo", "b.test"],
        ["tell", "http", "*"],
      ],
    );
    assert.match(await server.get("/echo", { host: "b.test" }), /^load/);
    assert.match(await server.get("/echo", { host: "c.test" }), /Unknown host/);
  });

  test("opens HTTPS where there was none, with a certificate for it", async () => {
    await using server = await reconfigured({}, [echo().module]);
    const plan = await server.apply({ https_ports: [0], https_interfaces: ["127.0.0.1"] });
    assert.equal(plan.ports.find(({ action }) => action === "open")?.service, "https");
    const { port } = server.host.listening().find(({ service }) => service === "https") ?? {};
    const { request } = await import("node:https");
    const asked = request({ port, host: "127.0.0.1", path: "/echo/", rejectUnauthorized: false, agent: false }).end();
    const [response] = await once(asked, "response");
    assert.equal(response.statusCode, 200);
    response.resume();
  });
});
