import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { describe, test } from "node:test";
import { WebSocketServer } from "ws";
import { mayConnect, originPolicy } from "#core/http/policy/origins.ts";
import type { HttpFinishedEvent, ModhostError, WebSocketEvent } from "#core/index.ts";
import { HttpError } from "#core/util/errors.ts";
import { eventually } from "#test/support/eventually.ts";
import { RawConnection, rawExchange } from "#test/support/raw.ts";
import { sentHeaders } from "#test/support/sent_headers.ts";
import { TestService } from "#test/support/service.ts";
import { handshake, handshakeStatus, SocketClient } from "#test/support/websocket.ts";

const accept = (event: WebSocketEvent) => void event.accept();

describe("a handler decides before the upgrade", () => {
  test("its result or error without accepting gets the same response as over HTTP", async () => {
    await using host = await TestService.start({
      route: {
        "WS /number": () => 403,
        "WS /text": () => "not today",
        "WS /object": async () => ({ status_code: 409, headers: { x_why: "taken" }, body: "taken" }),
        "WS /nothing": () => undefined,
        "WS /error": () => {
          throw new HttpError(429, "Slow down");
        },
        "WS /bug": async () => {
          throw new Error("the cause");
        },
        "WS /value": 418,
        "WS /later": (event) => {
          setImmediate(() => event.response.send("later"));
          return true;
        },
      },
    });
    const ask = (path: string) => rawExchange(host.port, handshake(path));
    assert.match(await ask("/app/number"), /^HTTP\/1\.1 403 .*Connection: close\r\n.*403 Forbidden\n$/s);
    assert.match(await ask("/app/text"), /^HTTP\/1\.1 200 .*Content-Length: 9\r\n.*\r\n\r\nnot today$/s);
    assert.match(await ask("/app/object"), /^HTTP\/1\.1 409 .*X-Why: taken\r\n.*taken$/s);
    assert.match(await ask("/app/nothing"), /^HTTP\/1\.1 404 /);
    assert.match(await ask("/app/error"), /^HTTP\/1\.1 429 .*Slow down\n$/s);
    const bug = await ask("/app/bug");
    assert.match(bug, /^HTTP\/1\.1 500 /);
    assert.doesNotMatch(bug, /the cause/);
    assert.match(host.errors.join(), /GET .*\/app\/bug.*the cause/s);
    assert.match(await ask("/app/value"), /^HTTP\/1\.1 418 /);
    assert.match(await ask("/app/later"), /^HTTP\/1\.1 200 .*later$/s);
  });

  test("exact routes run before wildcards, and a handler that returns nothing passes the request on", async () => {
    const reported = (event: WebSocketEvent, path: string | undefined) => void event.accept().send(`${path}`);
    await using host = await TestService.start({
      route: {
        "WS /rooms/*": reported,
        "WS /rooms/deep/*": (event, path) => (path === "pass" ? undefined : reported(event, `deep ${path}`)),
        "WS /rooms/exact": (event) => void event.accept().send("exact"),
        WS: (event) => void event.accept().send("base"),
        "WS /slash/": (event) => void event.accept().send("slash"),
      },
    });
    const first = async (path: string) => {
      using client = await SocketClient.open(host.url(path));
      return await client.next();
    };
    assert.equal(await first("/app/rooms/a%20b/c"), "a b/c");
    assert.equal(await first("/app/rooms"), "");
    assert.equal(await first("/app//rooms/exact"), "exact");
    assert.equal(await first("/app/rooms/deep/x"), "deep x");
    assert.equal(await first("/app/rooms/deep/pass"), "deep/pass");
    assert.equal(await first("/app"), "base");
    assert.equal(await first("/app/slash/"), "slash");
    assert.equal(await first("/app/slash"), "slash");
  });

  test("a large response to a client that asked for a websocket arrives whole", async () => {
    const size = 3 * 1024 * 1024;
    await using host = await TestService.start({
      route: {
        "WS /": async function* () {
          for (let at = 0; at < size; at += 65_536) yield Buffer.alloc(65_536, "x");
        },
      },
    });
    const response = await new Promise<number>((resolve, reject) => {
      RawConnection.open(host.port).then((connection) => {
        let bytes = 0;
        connection.socket.on("data", (piece: string) => (bytes += piece.length)).on("end", () => resolve(bytes));
        connection.socket.on("error", reject);
        connection.write(handshake("/app/"));
      }, reject);
    });
    assert.ok(response > size, `${response}`);
  });

  test("accept can be called once, before the response, with a protocol that the client offers", async () => {
    const faults: string[] = [];
    const attempt = (event: WebSocketEvent, protocol?: string) => {
      try {
        event.accept(protocol === undefined ? {} : { protocol });
      } catch (error) {
        faults.push((error as ModhostError).code, (error as Error).message);
      }
    };
    await using host = await TestService.start({
      websocket: { protocols: ["v2", "v1"] },
      route: {
        "WS /twice": (event) => {
          event.accept();
          attempt(event);
        },
        "WS /unoffered": (event) => {
          attempt(event, "v9");
          return 400;
        },
        "WS /answered": (event) => {
          event.response.send("x");
          attempt(event);
        },
        "WS /own": (event) => void event.accept({ protocol: event.protocols.at(-1) ?? "" }),
        "WS /": accept,
      },
    });
    using twice = await SocketClient.open(host.url("/app/twice"));
    assert.equal(twice.ws.protocol, "");
    assert.equal(await handshakeStatus(host.url("/app/unoffered")), 400);
    assert.equal(await handshakeStatus(host.url("/app/answered")), 200);
    assert.deepEqual(
      faults.filter((_, at) => at % 2 === 0),
      ["WEBSOCKET_INVALID", "WEBSOCKET_INVALID", "WEBSOCKET_INVALID"],
    );
    assert.match(faults.join("\n"), /accepted before\n.*v9.*event\.protocols\n.*a response already/s);
    const agreed = async (path: string, protocols: string[]) => {
      using client = await SocketClient.open(host.url(path), { protocols });
      return client.ws.protocol;
    };
    assert.equal(await agreed("/app/", ["v1", "v2"]), "v2");
    assert.equal(await agreed("/app/own", ["v1", "other"]), "other");
    const unknown = await rawExchange(host.port, [
      handshake("/app/", { "Sec-WebSocket-Protocol": "other" }),
      Buffer.from([0x88, 0x80, 0, 0, 0, 0]).toString("latin1"),
    ]);
    assert.match(unknown, /^HTTP\/1\.1 101 /);
    assert.doesNotMatch(unknown, /Sec-WebSocket-Protocol/);
  });

  test("headers of the response are sent with the 101, checked like others", async () => {
    await using host = await TestService.start({
      route: {
        "WS /": (event) => {
          event.response.headers.set_cookie = ["a=1", "b=2"];
          event.response.headers.connection = "close";
          event.accept();
        },
        "WS /bad": (event) => {
          event.response.headers.x_bad = "a\r\nb: c";
          event.accept();
        },
      },
    });
    using connection = await RawConnection.open(host.port);
    connection.write(handshake("/app/"));
    const [head] = await connection.until(/^.*\r\n\r\n/s);
    assert.match(head, /^HTTP\/1\.1 101 .*Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n/s);
    assert.match(head, /Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r\n/);
    assert.deepEqual(head.match(/^Connection: .*$/gm), ["Connection: Upgrade"]);
    assert.equal(await handshakeStatus(host.url("/app/bad")), 500);
  });

  test("compression is offered when the app wants it; an unknown offer is declined, a malformed one 400", async () => {
    await using host = await TestService.start({ route: { "WS /": accept }, websocket: { compression: true } });
    using client = await SocketClient.open(host.url("/app/"));
    assert.match(client.ws.extensions, /permessage-deflate/);
    const bad = handshake("/app/", { "Sec-WebSocket-Extensions": "permessage-deflate; =1" });
    assert.match(await rawExchange(host.port, bad), /^HTTP\/1\.1 400 .*Sec-WebSocket-Extensions/s);
    const offers = "permessage-deflate; nonsense=1, permessage-deflate";
    using second = await RawConnection.open(host.port);
    second.write(handshake("/app/", { "Sec-WebSocket-Extensions": offers }));
    await second.until(/^HTTP\/1\.1 101 .*Sec-WebSocket-Extensions: permessage-deflate\r\n/s);
    await using plain = await TestService.start({ route: { "WS /": accept } });
    using other = await SocketClient.open(plain.url("/app/"));
    assert.equal(other.ws.extensions, "");
  });
});

describe("requests without a valid handshake", () => {
  const provider = {
    route: { "WS /chat": accept, "POST /chat": () => "posted", "WS /only": accept, "GET /page": () => "page" },
  };

  test("wrong fields get an error before a handler runs", async () => {
    await using host = await TestService.start(provider);
    const ask = (fields: Record<string, string | undefined>) => rawExchange(host.port, handshake("/app/chat", fields));
    for (const key of [undefined, "", "short", "dGhlIHNhbXBsZSBub25jZQ==, dGhlIHNhbXBsZSBub25jZQ=="]) {
      assert.match(await ask({ "Sec-WebSocket-Key": key }), /^HTTP\/1\.1 400 .*Sec-WebSocket-Key/s, key);
    }
    for (const version of [undefined, "8", "14", "x"]) {
      const reply = await ask({ "Sec-WebSocket-Version": version });
      assert.match(reply, /^HTTP\/1\.1 426 .*Sec-Websocket-Version: 13\r\n/s, version);
      assert.match(reply, /Upgrade: websocket\r\n/);
    }
    for (const protocol of ["", "a,", "a b", "a, a", "a;b"]) {
      const reply = await ask({ "Sec-WebSocket-Protocol": protocol });
      assert.match(reply, /^HTTP\/1\.1 400 .*Sec-WebSocket-Protocol/s, protocol);
    }
  });

  test("a request without Upgrade for a websocket path gets 426, and other methods get 405", async () => {
    await using host = await TestService.start(provider);
    const get = await fetch(host.url("/app/only"));
    assert.deepEqual([get.status, get.headers.get("upgrade")], [426, "websocket"]);
    assert.equal((await fetch(host.url("/app/only"), { method: "HEAD" })).status, 426);
    const put = await fetch(host.url("/app/only"), { method: "PUT" });
    assert.deepEqual([put.status, put.headers.get("allow")], [405, "GET, HEAD, OPTIONS"]);
    const options = await fetch(host.url("/app/chat"), { method: "OPTIONS" });
    assert.deepEqual([options.status, options.headers.get("allow")], [200, "GET, HEAD, OPTIONS, POST"]);
    // The request does not ask to switch: Connection does not name Upgrade, or there is a body.
    assert.match(await rawExchange(host.port, handshake("/app/only", { Connection: "close" })), /^HTTP\/1\.1 426 /);
    const body = `${handshake("/app/only", { "Content-Length": "3", Connection: "Upgrade, close" })}abc`;
    assert.match(await rawExchange(host.port, body), /^HTTP\/1\.1 426 /);
    assert.match(
      await rawExchange(host.port, handshake("/app/only", { Upgrade: "h2c", Connection: "Upgrade, close" })),
      /^HTTP\/1\.1 426 /,
    );
  });

  test("the request is a plain GET when no websocket is routed, and the connection continues", async () => {
    await using host = await TestService.start(provider);
    using connection = await RawConnection.open(host.port);
    connection.write(handshake("/app/page"));
    await connection.until(/200 OK.*page$/s);
    connection.write(handshake("/app/nowhere"));
    await connection.until(/404 Not Found\r\n/);
    connection.write(handshake("/app/chat", {}, "POST"));
    await connection.until(/posted$/);
    connection.write(handshake("/app/../../x"));
    await connection.until(/400 Bad Request\r\n/);
    connection.write(handshake("/app/chat"));
    await connection.until(/101 Switching Protocols/);
  });

  test("a handshake that is sent during another request of the connection is not switched", async () => {
    const release = Promise.withResolvers<string>();
    await using host = await TestService.start({ route: { "WS /": accept, "GET /slow": () => release.promise } });
    using connection = await RawConnection.open(host.port);
    connection.write(`GET /app/slow HTTP/1.1\r\nHost: a\r\n\r\n${handshake("/app/")}`);
    await eventually("the request has begun", () => host.mount.active.size > 0, { every: 2 });
    release.resolve("slow");
    await connection.until(/200 OK.*slow.*426 Upgrade Required/s);
  });
});

describe("pages of other sites", () => {
  const origin = "https://friend.example";

  test("are refused with 403 before the handler runs, unless they are named", async () => {
    let requested = 0;
    const route = {
      "WS /": (event: WebSocketEvent) => {
        requested += 1;
        event.accept();
      },
    };
    await using host = await TestService.start({ route });
    const own = `http://127.0.0.1:${host.port}`;
    assert.equal(await handshakeStatus(host.url("/app/"), { Origin: own }), 101);
    assert.equal(await handshakeStatus(host.url("/app/"), {}), 101);
    assert.equal(requested, 2);
    for (const other of ["null", origin, "http://127.0.0.1:1", "http://localhost", "nonsense", `${own}.evil.example`]) {
      assert.equal(await handshakeStatus(host.url("/app/"), { Origin: other }), 403, other);
    }
    assert.equal(requested, 2);
  });

  test("a policy joins lists of origins, however they are written", () => {
    const request = (sent: string | undefined, secure = false) => ({ ...sentHeaders({ origin: sent }), secure });
    const policy = originPolicy(["https://Friend.example/"], undefined, ["chrome-extension://abc"]);
    assert.equal(mayConnect(policy, request(origin), "host"), true);
    assert.equal(mayConnect(policy, request("https://friend.example:8443"), "host"), false);
    assert.equal(mayConnect(policy, request("chrome-extension://abc"), "host"), true);
    assert.equal(mayConnect(policy, request("chrome-extension://abcd"), "host"), false);
    assert.equal(mayConnect(originPolicy([origin], ["*"]), request("null"), "host"), true);
    assert.equal(mayConnect(undefined, request(undefined), "host"), true);
  });

  test("the server's own origin follows the Host, whatever port the scheme has", () => {
    const may = (sent: string, authority: string | undefined, secure: boolean) =>
      mayConnect(undefined, { ...sentHeaders({ origin: sent }), secure }, authority);
    assert.equal(may("https://a.example", "a.example:443", true), true);
    assert.equal(may("https://A.example", "a.EXAMPLE", true), true);
    assert.equal(may("https://a.example:8443", "a.example:8443", true), true);
    assert.equal(may("https://a.example", "a.example:8443", true), false);
    // An untrusted proxy may have removed the encryption; a plain page does not belong to the
    // encrypted site.
    assert.equal(may("https://a.example", "a.example", false), true);
    assert.equal(may("http://a.example", "a.example", true), false);
    assert.equal(may("http://a.example", undefined, false), false);
    assert.equal(may("file://a.example", "a.example", false), false);
  });
});

describe("an upgrade as others see it", () => {
  test("http-finished reports a 101 once, when it is sent", async () => {
    const seen: Pick<HttpFinishedEvent, "status" | "complete" | "app" | "bytes">[] = [];
    await using host = await TestService.start({ route: { "WS /": accept, "WS /no": () => 403 } });
    const reported = Promise.withResolvers<void>();
    host.hook("http-finished", ({ status, complete, app, bytes }: HttpFinishedEvent) => {
      seen.push({ status, complete, app, bytes });
      if (status === 403) reported.resolve();
    });
    using client = await SocketClient.open(host.url("/app/"));
    assert.deepEqual(seen, [{ status: 101, complete: true, app: "app", bytes: 0 }]);
    await client.close();
    assert.equal(await handshakeStatus(host.url("/app/no")), 403);
    await reported.promise;
    assert.deepEqual(
      seen.map(({ status }) => status),
      [101, 403],
    );
  });

  test("explain reports what a path is routed for", async () => {
    await using host = await TestService.start({ route: { "WS /chat/*": accept, "GET /page": () => "page" } });
    const brief = (method: string, path: string) => {
      const { status, candidates } = host.service.explain(method, path);
      return [status, candidates.map((route) => `${route.method} ${route.path}`)];
    };
    assert.deepEqual(brief("WS", "/app/chat/a"), [404, ["WS /app/chat/*"]]);
    assert.deepEqual(brief("GET", "/app/chat/a"), [426, []]);
    assert.deepEqual(brief("WS", "/app/page"), [404, ["GET /app/page"]]);
    assert.deepEqual(brief("PUT", "/app/chat/a"), [405, []]);
  });
});

describe("a handler may take the connection itself", () => {
  test("once, with the bytes that have arrived, and the request lasts as long as the connection", async () => {
    const over = Promise.withResolvers<void>();
    const faults: unknown[] = [];
    await using host = await TestService.start({
      route: {
        "WS /own": (event) => {
          const { socket, head } = event.tunnel();
          try {
            event.accept();
          } catch (error) {
            faults.push((error as ModhostError).code);
          }
          event.response.on_destroy = over.resolve;
          socket.write(`HTTP/1.1 101 Switching Protocols\r\n\r\n${head}`);
          socket.pipe(socket);
        },
        "WS /broken": (event) => {
          event.tunnel();
          throw new Error("no");
        },
      },
    });
    using client = await RawConnection.open(host.port);
    client.write(`${handshake("/app/own")}early `);
    await client.until(/\r\n\r\nearly $/);
    client.write("late");
    await client.until(/late$/);
    assert.deepEqual([faults, host.service.active().length], [["WEBSOCKET_INVALID"], 1]);
    client.destroy();
    await over.promise;
    assert.equal(host.service.active().length, 0);
    assert.equal(await rawExchange(host.port, handshake("/app/broken")), "", "what is thrown ends the connection");
    assert.match(host.errors.join(), /Error: no/);
  });

  test("and serve it with a websocket library, until the module leaves", async () => {
    const library = new WebSocketServer({ noServer: true });
    library.on("connection", (socket) => socket.on("message", (data, binary) => socket.send(data, { binary })));
    await using host = await TestService.start({
      route: {
        "WS /*": (event) => {
          const { socket, head } = event.tunnel();
          library.handleUpgrade(event.request.raw as IncomingMessage, socket, head, (client) => {
            event.request.leaving.addEventListener("abort", () => client.close(1012));
            library.emit("connection", client, event.request.raw);
          });
          socket.resume();
        },
      },
    });
    const client = new WebSocket(host.url("/app/room"));
    const next = (event: string) => new Promise<Event>((resolve) => client.addEventListener(event, resolve));
    await next("open");
    client.send("hello");
    assert.equal(((await next("message")) as MessageEvent).data, "hello");
    const closed = next("close");
    await host.mount.retire(60);
    assert.equal(((await closed) as CloseEvent).code, 1012);
  });
});
