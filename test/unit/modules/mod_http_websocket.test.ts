import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { describe, type TestContext, test } from "node:test";
import { WebSocket } from "ws";
import { createTestHost, type TestHostOptions } from "#core/testing/index.ts";
import type { HttpProvider, Module, ModuleFunction, WebSocketConnection, WebSocketEvent } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { RawConnection, rawExchange } from "#test/support/raw.ts";
import { handshake, handshakeStatus, openRaw, SocketClient } from "#test/support/websocket.ts";

const echo = async (event: WebSocketEvent) => {
  const socket = event.accept();
  for await (const message of socket) await socket.send(message);
};

const providing = (provider: HttpProvider): ModuleFunction =>
  function load(module: Module) {
    module.depends("http");
    module.provides("http", provider);
  };

async function hostOf(
  t: TestContext,
  apps: Readonly<Record<string, ModuleFunction>>,
  config: TestHostOptions["config"] = {},
) {
  const modules = Object.entries(apps).map(([name, load]) => ({ name, load }));
  const host = await createTestHost({ modules, config: { modules_enabled: ["http"], unload_grace: 1, ...config } });
  t.after(() => host.stop());
  const holds = (name: string) => host.host.modules().find((module) => module.name === name)?.holds.websocket ?? 0;
  return { ...host, holds };
}

const chat = providing({ route: { "WS /": echo } });

describe("websockets over TLS", () => {
  test("are served as over plain HTTP, to their own origin", async (t) => {
    const secure: boolean[] = [];
    const recording = (event: WebSocketEvent) => {
      secure.push(event.request.secure);
      return echo(event);
    };
    const host = await hostOf(t, { chat: providing({ route: { "WS /": recording } }) }, { https_ports: [0] });
    const url = host.url("/chat/", "https");
    using client = await SocketClient.open(url, { headers: { Origin: new URL(url).origin } });
    client.send("x".repeat(500_000));
    assert.equal(await client.next(), "x".repeat(500_000));
    assert.deepEqual(secure, [true]);
    assert.equal(await handshakeStatus(url, { Origin: new URL(url).origin.replace("https", "http") }), 403);
    assert.deepEqual((await client.close(1000)).code, 1000);
  });

  test("are not opened by an upgrade that nobody serves or that arrives before an earlier response, which is an ordinary request", async (t) => {
    const release = Promise.withResolvers<string>();
    const app = providing({ route: { "WS /": echo, "GET /slow": () => release.promise, "GET /plain": "plain" } });
    const host = await hostOf(t, { chat: app }, { https_ports: [0] });
    const port = Number(new URL(host.url("/", "https")).port);
    using connection = await RawConnection.open(port, { tls: true });
    for (const expected of [/200 OK.*plain/s, /(200 OK.*plain.*){2}/s]) {
      connection.write(handshake("/chat/plain"));
      await connection.until(expected);
    }
    connection.write(`GET /chat/slow HTTP/1.1\r\nHost: a\r\n\r\n${handshake("/chat/")}`);
    release.resolve("slow");
    await connection.until(/200 OK.*slow.*426 Upgrade Required/s);
    assert.equal(
      await handshakeStatus(host.url("/chat/", "https"), { Origin: new URL(host.url("/", "https")).origin }),
      101,
    );
  });

  test("a client that does not read a websocket is cut", async (t) => {
    const sockets: WebSocketConnection[] = [];
    const flood = async (event: WebSocketEvent) => {
      const socket = event.accept();
      sockets.push(socket);
      for (;;) await socket.send(Buffer.alloc(256 * 1024));
    };
    const host = await hostOf(
      t,
      { chat: providing({ route: { "WS /flood": flood } }) },
      { https_ports: [0], http_progress_timeout: 0.2 },
    );
    using stuck = await SocketClient.open(host.url("/chat/flood", "https"));
    stuck.ws.pause();
    await eventually("the module has the socket", () => sockets.length > 0, { every: 2 });
    assert.deepEqual(await sockets[0]?.closed, { code: 1006, reason: "the client does not read" });
    assert.deepEqual(
      host.log().filter((line) => line.includes('"level":"error"')),
      [],
    );
  });

  test("a client that does not respond to pings is disconnected, and one that does is not", async (t) => {
    const host = await hostOf(t, { chat }, { https_ports: [0], http_websocket_ping_interval: 0.1 });
    using good = await SocketClient.open(host.url("/chat/", "https"));
    using silent = await SocketClient.open(host.url("/chat/", "https"), { autoPong: false });
    assert.equal((await silent.closed).code, 1006);
    good.send("still here");
    assert.equal(await good.next(), "still here");
  });

  test("a client that reads slowly does not count as silent", async (t) => {
    const flood = (event: WebSocketEvent) => {
      const socket = event.accept();
      for (let sent = 0; sent < 48; sent += 1) void socket.send(Buffer.alloc(512 * 1024));
    };
    const host = await hostOf(
      t,
      { chat: providing({ route: { "WS /flood": flood } }) },
      { https_ports: [0], http_websocket_ping_interval: 0.4, http_websocket_max_unsent: 64 * 1024 * 1024 },
    );
    using slow = await SocketClient.open(host.url("/chat/flood", "https"));
    slow.ws.on("message", () => {
      slow.ws.pause();
      setTimeout(() => slow.ws.resume(), 60);
    });
    for (let received = 0; received < 48; received += 1) assert.equal((await slow.next()).length, 512 * 1024);
  });

  test("a GET over HTTP/2 for a websocket gets 426, and WS is not a method that clients can send", async (t) => {
    const host = await hostOf(t, { chat }, { https_ports: [0] });
    const session = connectHttp2(host.url("", "https"), { rejectUnauthorized: false });
    t.after(() => session.destroy());
    const ask = (method: string) =>
      new Promise<Record<string, unknown>>((resolve, reject) => {
        const stream = session.request({ ":method": method, ":path": "/chat/" });
        stream.on("response", resolve).on("error", reject).resume().end();
      });
    const get = await ask("GET");
    assert.deepEqual([get[":status"], get.upgrade, get.connection], [426, undefined, undefined]);
    assert.equal((await ask("WS"))[":status"], 501);
    assert.equal(session.remoteSettings.enableConnectProtocol, false);
  });
});

describe("the host, path and origin of a websocket", () => {
  test("choose the app by virtual host, and an unknown host has none", async (t) => {
    const named = (module: Module) => {
      module.depends("http");
      module.provides("http", { route: { "WS /": (event) => void event.accept().send(module.host) } });
    };
    const host = await hostOf(
      t,
      { chat: named },
      { hosts: { "a.example": {}, "b.example": {} }, http_paths: { chat: "/talk/$host" } },
    );
    for (const name of ["a.example", "b.example"]) {
      using client = await SocketClient.open(host.url(`/talk/${name}/`), { headers: { Host: `${name}:80` } });
      assert.equal(await client.next(), name);
    }
    assert.equal(await handshakeStatus(host.url("/talk/b.example/"), { Host: "a.example" }), 404);
    assert.equal(await handshakeStatus(host.url("/talk/a.example/"), { Host: "c.example" }), 404);
  });

  test("come from a trusted proxy with address and encryption", async (t) => {
    const seen: unknown[] = [];
    const note = ({ request }: WebSocketEvent) => {
      seen.push(request.ip, request.secure);
      return 403;
    };
    const host = await hostOf(t, { chat: providing({ route: { "WS /": note } }) });
    const headers = { "X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https" };
    await handshakeStatus(host.url("/chat/"), headers);
    assert.deepEqual(seen, ["192.0.2.7", true]);
  });

  test("are checked by origins of the app, of CORS by name, and of the server's external URL", async (t) => {
    const route = { "WS /": (event: WebSocketEvent) => void event.accept() };
    const host = await hostOf(
      t,
      {
        own: providing({ route, websocket: { origins: ["https://friend.example"] } }),
        any: providing({ route, websocket: { origins: "*" } }),
        named: providing({ route, cors: { enabled: true, origins: ["https://friend.example"] } }),
        open: providing({ route, cors: { enabled: true, origins: "*" } }),
      },
      { http_external_url: "https://www.example.org/base/" },
    );
    const ask = (app: string, origin: string) => handshakeStatus(host.url(`/${app}/`), { Origin: origin });
    assert.equal(await ask("own", "https://friend.example"), 101);
    assert.equal(await ask("own", "https://foe.example"), 403);
    assert.equal(await ask("own", "https://www.example.org"), 101);
    assert.equal(await ask("any", "https://foe.example"), 101);
    assert.equal(await ask("named", "https://friend.example"), 101);
    assert.equal(await ask("named", "https://foe.example"), 403);
    // CORS that allows any site excludes cookies. A websocket would be opened with them, so that
    // permission does not apply to it.
    assert.equal(await ask("open", "https://foe.example"), 403);
  });
});

describe("unloading a module with websockets", () => {
  test("closes them with 1001, a reload with 1012, and another module's reload keeps them", async (t) => {
    const host = await hostOf(t, { chat, other: chat });
    using first = await SocketClient.open(host.url("/chat/"));
    using second = await SocketClient.open(host.url("/chat/"));
    assert.equal(host.holds("chat"), 2);
    await host.host.reload("other");
    assert.equal(await second.close().then(({ code }) => code), 1005);
    first.send("still here");
    assert.equal(await first.next(), "still here");
    await eventually("one socket is left", () => host.holds("chat") === 1, { every: 2 });

    await host.host.reload("chat");
    assert.deepEqual(await first.closed, { code: 1012, reason: "" });
    assert.equal(host.holds("chat"), 0);

    using third = await SocketClient.open(host.url("/chat/"));
    third.send("new instance");
    assert.equal(await third.next(), "new instance");
    await host.host.unload("chat");
    assert.deepEqual(await third.closed, { code: 1001, reason: "" });
    assert.equal(await handshakeStatus(host.url("/chat/")), 404);
  });

  test("closes those of two apps of the module with the going-away code", async (t) => {
    const both = (module: Module) => {
      module.depends("http");
      for (const name of ["one", "two"]) module.provides("http", { name, route: { "WS /": echo } });
    };
    const host = await hostOf(t, { both });
    using one = await SocketClient.open(host.url("/one/"));
    using two = await SocketClient.open(host.url("/two/"));
    await host.host.unload("both");
    assert.deepEqual([(await one.closed).code, (await two.closed).code], [1001, 1001]);
  });

  test("is delayed only for a limited time by clients that do not confirm the close or do not read", async (t) => {
    const flood = async (event: WebSocketEvent) => {
      const socket = event.accept();
      for (;;) await socket.send(Buffer.alloc(256 * 1024));
    };
    const host = await hostOf(
      t,
      { chat: providing({ route: { "WS /": echo, "WS /flood": flood } }) },
      { http_websocket_close_timeout: 60, unload_grace: 0.2 },
    );
    const port = Number(new URL(host.url("/")).port);
    using deaf = await openRaw(port, "/chat/");
    using stuck = await SocketClient.open(host.url("/chat/flood"));
    stuck.ws.pause();
    const began = performance.now();
    await host.host.unload("chat");
    // The closing handshake has a minute.
    assert.ok(performance.now() - began < 50_000);
    await deaf.end();
    stuck.ws.resume();
    assert.equal((await stuck.closed).code, 1006);
    assert.deepEqual(
      host.log().filter((line) => line.includes('"level":"error"')),
      [],
    );
  });

  test("gives a handler that accepts late a connection that is being closed", async (t) => {
    const entered = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const slow = async (event: WebSocketEvent) => {
      entered.resolve();
      await release.promise;
      event.accept();
    };
    const host = await hostOf(t, { chat: providing({ route: { "WS /": slow } }) });
    const opening = SocketClient.open(host.url("/chat/"));
    await entered.promise;
    const unloaded = host.host.unload("chat");
    release.resolve();
    using client = await opening;
    assert.equal((await client.closed).code, 1001);
    await unloaded;
  });

  test("is different from stopping the server, which closes with 1001 before it ends, and from a reload of the HTTP module with 1012", async (t) => {
    const host = await hostOf(t, { chat });
    using first = await SocketClient.open(host.url("/chat/"));
    await host.host.reload("http");
    assert.equal((await first.closed).code, 1012);
    using second = await SocketClient.open(host.url("/chat/"));
    second.send("served by the next instance");
    assert.equal(await second.next(), "served by the next instance");
    const stopped = host.stop();
    assert.equal((await second.closed).code, 1001);
    await stopped;
  });

  test("leaves nothing behind after a hundred rounds of clients and reloads", async (t) => {
    const host = await hostOf(t, { chat });
    const url = host.url("/chat/");
    for (let round = 0; round < 100; round += 1) {
      const clients = await Promise.all([SocketClient.open(url), SocketClient.open(url)]);
      for (const client of clients) client.send(`${round}`);
      assert.deepEqual(await Promise.all(clients.map((client) => client.next())), [`${round}`, `${round}`]);
      if (round % 10 > 0) for (const client of clients) client.ws.terminate();
      else {
        await host.host.reload("chat");
        assert.deepEqual(await Promise.all(clients.map(async (client) => (await client.closed).code)), [1012, 1012]);
      }
    }
    await host.host.reload("chat");
    assert.equal(host.holds("chat"), 0);
    assert.deepEqual(
      host.log().filter((line) => line.includes('"level":"error"')),
      [],
    );
  });
});

test("the test kit's connections without a port support websockets", async (t) => {
  const host = await hostOf(t, { chat });
  const ws = new WebSocket("ws://localhost/chat/", { createConnection: () => host.connect() });
  await once(ws, "open");
  ws.send(Buffer.alloc(500_000, 1));
  const [message] = (await once(ws, "message")) as [Buffer];
  assert.deepEqual(message, Buffer.alloc(500_000, 1));
  ws.close(1000);
  assert.equal((await once(ws, "close"))[0], 1000);
});

for (const scheme of ["http", "https"]) {
  test(`a ${scheme} connection that was used before can be upgraded, and one that begins with garbage cannot`, async (t) => {
    const host = await hostOf(
      t,
      { chat: providing({ route: { "WS /": () => 403, "GET /page": () => "page" } }) },
      { https_ports: [0] },
    );
    const port = Number(new URL(host.url("/", scheme)).port);
    const tls = scheme === "https";
    using connection = await RawConnection.open(port, { tls });
    connection.write("GET /chat/page HTTP/1.1\r\nHost: a\r\n\r\n");
    await connection.until(/page$/);
    connection.write(handshake("/chat/"));
    assert.match(await connection.end(), /page.*HTTP\/1\.1 403 /s);
    assert.match(await rawExchange(port, `\0${handshake("/chat/")}`, { tls }), /^HTTP\/1\.1 400 /);
  });
}
