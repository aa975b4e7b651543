/** Options of HTTP that change while it serves: they apply at once, and clients stay connected. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { WebSocket } from "ws";
import type { Module } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { reconfigured } from "#test/unit/core/operations/reconfigured.ts";

/** An app that counts its loads, echoes on a websocket, and streams a second piece on request. */
function echo() {
  const seen = { loads: 0, isWaiting: false };
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
        "GET /wait": async () => {
          seen.isWaiting = true;
          await more.promise;
          return "waited";
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

async function reply(socket: Socket, request: string): Promise<string> {
  socket.write(request);
  const [data] = (await once(socket, "data")) as [Buffer];
  return data.toString();
}

describe("an option of HTTP that changes", { concurrency: 4 }, () => {
  test("replaces no module instance, and streams, websockets and connections continue", async () => {
    const app = echo();
    await using server = await reconfigured({}, [app.module]);
    const at = `127.0.0.1:${server.port()}`;
    const stream = (await fetch(`http://${at}/echo/stream`)).body?.getReader();
    const read = async () => new TextDecoder().decode((await stream?.read())?.value);
    assert.equal(await read(), "first");
    const websocket = new WebSocket(`ws://${at}/echo/ws`);
    await once(websocket, "open");
    const retained = connect(server.port(), "127.0.0.1");
    assert.match(await reply(retained, "GET /echo/ HTTP/1.1\r\nHost: a\r\n\r\n"), /load 1/);

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
    assert.match(await reply(retained, "GET /other/ HTTP/1.1\r\nHost: a\r\n\r\n"), /load 1/);
    assert.match(await reply(retained, "GET /echo/ HTTP/1.1\r\nHost: a\r\n\r\n"), /^HTTP\/1\.1 404/);
    const refused = await fetch(`http://${at}/other/`, { method: "POST", body: "more than ten bytes" });
    assert.equal(refused.status, 413);
    const readable = await fetch(`http://${at}/other/`, { headers: { origin: "http://elsewhere.test" } });
    assert.equal(readable.headers.get("access-control-allow-origin"), "*");
    const long = await fetch(`http://${at}/other/`, { headers: { "x-long": "x".repeat(3000) } });
    assert.equal(long.status, 431);
    await fetch(`http://${at}/other/more`);
    assert.equal(await read(), "second");
    websocket.terminate();
    retained.destroy();
  });

  test("keeps the metrics of connections: open ones stay open, and none is lost", async () => {
    const values = { modules_enabled: ["http", "http_openmetrics"] };
    await using server = await reconfigured(values, [echo().module]);
    const retained = connect(server.port(), "127.0.0.1");
    assert.match(await reply(retained, "GET /echo/ HTTP/1.1\r\nHost: a\r\n\r\n"), /load 1/);
    const readMetrics = async () => {
      const requested = await fetch(`http://127.0.0.1:${server.port()}/metrics`, { headers: { connection: "close" } });
      const text = await requested.text();
      const lines = text.split("\n");
      const value = (name: string) =>
        Number(lines.find((line) => line.startsWith(`modhost_http_${name} `))?.split(" ")[1]);
      return { open: value("open_connections"), all: value('connections_total{scheme="http"}') };
    };
    const before = await readMetrics();
    await server.apply({ ...values, http_idle_timeout: 50 });
    const after = await readMetrics();
    assert.ok(after.all > before.all, `${before.all} connections before, ${after.all} after`);
    assert.ok(after.open >= 2, `${after.open} are open: the one that was, and the one that asks`);
    // A reload replaces the listeners. The counters of the previous ones continue and count once,
    // also when their last connection is gone.
    await server.host.reload("http");
    retained.destroy();
    let again = await readMetrics();
    let requested = 1;
    for (; again.open > 1 && requested < 1000; requested += 1) again = await readMetrics();
    assert.equal(again.open, 1);
    assert.equal(again.all, after.all + requested);
  });

  test("is refused by the HTTP module when it is wrong, and nothing changes", async () => {
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

  test("is refused when it names a path that no request can have, also at the start", async () => {
    const wrong = [
      ["//x", /count as one/],
      ["/x//y/", /count as one/],
      ["/..", /segments \. and \.\./],
      ["/a/./b", /segments \. and \.\./],
      ["/x?y", /no \? and no #/],
      ["/x%20y", /without escapes/],
      ["/$host/f", /no virtual host's/],
      [5, /must be a path/],
    ] as const;
    await using server = await reconfigured({ http_paths: { echo: "/x y/é.d/..e/" } }, [echo().module]);
    assert.equal((await fetch(`http://127.0.0.1:${server.port()}/x%20y/%C3%A9.d/..e/`)).status, 200);
    for (const [path, reason] of wrong) {
      await assert.rejects(server.apply({ http_paths: { echo: path } }), reason);
      await assert.rejects(reconfigured({ http_paths: { echo: path } }, [echo().module]), reason);
    }
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
    await server.apply({ http_middleware: ["./one.mjs"], unload_grace: 0 });
    assert.equal(await by(), "one");
    const text = async (name: string) => (await fetch(`http://127.0.0.1:${server.port()}/echo/${name}`)).text();
    const waiting = text("wait");
    await eventually("the handler waits", () => app.seen.isWaiting);
    await assert.rejects(server.apply({ http_middleware: ["./gone.mjs"] }), /http_middleware\[0\]/);
    assert.equal(await by(), "one");
    await server.apply({ http_middleware: ["./two.mjs"] });
    assert.equal(await by(), "two");
    const rewriting = `export default () => (context, next) => { context.path = "/elsewhere"; return next(); };`;
    await writeFile(join(server.folder, "rewriting.mjs"), rewriting);
    await server.apply({ http_middleware: ["./rewriting.mjs"] });
    await by();
    await by();
    const reported = server
      .log()
      .match(/middleware before apps \(\.\/rewriting\.mjs\) changed the path or the method/g);
    assert.equal(reported?.length, 1);
    await server.apply({ unload_grace: 0 });
    assert.equal(await by(), null);
    assert.equal(app.seen.loads, 1);
    await text("more");
    assert.equal(await waiting, "waited", "a request that is behind the old middleware goes on");
  });

  test("serves added hosts, without a new instance of the HTTP module", async () => {
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

  test("opens HTTPS for the first time, with a certificate for it", async () => {
    await using server = await reconfigured({}, [echo().module]);
    const plan = await server.apply({ https_ports: [0], https_interfaces: ["127.0.0.1"] });
    assert.equal(plan.ports.find(({ action }) => action === "open")?.service, "https");
    const { port } = server.host.listening().find(({ service }) => service === "https") ?? {};
    const { request } = await import("node:https");
    const requested = request({
      port,
      host: "127.0.0.1",
      path: "/echo/",
      rejectUnauthorized: false,
      agent: false,
    }).end();
    const [response] = await once(requested, "response");
    assert.equal(response.statusCode, 200);
    response.resume();
  });
});
