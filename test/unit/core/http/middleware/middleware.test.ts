/** Koa middleware of a provider works like other handlers of the host, over every transport. */
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { describe, test } from "node:test";
import Router from "@koa/router";
import type { HttpModule } from "#core/http/index.ts";
import { createTestHost } from "#core/testing/index.ts";
import type { HttpFinishedEvent, HttpProvider } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { serving, startHost } from "#test/support/host.ts";
import { RawConnection } from "#test/support/raw.ts";
import { overEach } from "#test/support/transports.ts";
import { finished, finishOf, host, pages, reported } from "./middleware_host.ts";

describe("a Koa application in a provider", () => {
  overEach(host, "answers as a JSON API with a router", async (client) => {
    assert.deepEqual(JSON.parse(await client.text("/shop/items/1")), { id: "1", name: "tea" });
    const put = await client.request({ method: "PUT", path: "/shop/items/2", body: '{"id":"2"}' });
    assert.deepEqual([put.status, put.text], [201, '{"id":"2"}']);
    assert.deepEqual(
      [put.header("content-type"), put.header("content-length"), put.header("x-time")],
      ["application/json; charset=utf-8", "10", "1"],
    );
    assert.equal(await client.status({ method: "DELETE", path: "/shop/items/1" }), 204);
    const options = await client.request({ method: "OPTIONS", path: "/shop/items" });
    assert.deepEqual([options.status, options.header("allow")], [200, "HEAD, GET"]);
    assert.equal(await client.status({ method: "POST", path: "/shop/items" }), 405);
    const head = await client.request({ method: "HEAD", path: "/shop/items/1" });
    assert.deepEqual([head.status, head.header("content-length"), head.text], [200, "23", ""]);
  });

  overEach(host, "leaves unknown paths to the 404 page of the host", async (client) => {
    const reply = await client.request("/shop/nowhere");
    assert.deepEqual([reply.status, reply.header("content-type")], [404, "text/html; charset=utf-8"]);
    assert.equal(reply.header("x-time"), "1", "headers that it set stay");
    const thrown = await client.request("/shop/items/9");
    assert.equal(thrown.status, 404);
    assert.match(thrown.text, /No such item/);
  });

  test("emits its errors to the application's own listeners", async () => {
    reported.length = 0;
    await host().client("HTTP/1.1").request("/shop/items/99");
    assert.deepEqual(
      reported.map((error) => (error as Error).message),
      ["No such item"],
    );
  });
});

describe("a router of @koa/router in a provider", () => {
  test("has its routes listed, explained and counted one by one, and refuses methods that it lacks", async () => {
    const router = new Router();
    router.get("/", (context) => {
      context.body = "all";
    });
    router.get("/items/:id", (context) => {
      context.body = `item ${context.params.id}`;
    });
    router.use((_context, next) => next());
    const routes: (string | undefined)[] = [];
    await using server = await startHost({
      modules: {
        mod_shelf(module) {
          module.depends("http");
          module.provides("http", { middleware: router });
          module.hook("http-finished", ({ route }: HttpFinishedEvent) => void routes.push(route));
        },
      },
    });
    const client = server.client("HTTP/1.1");
    assert.equal((await client.request("/shelf/items/7")).text, "item 7");
    assert.equal(await client.status("/shelf/items/7/parts"), 404);
    const refused = await client.request({ method: "PUT", path: "/shelf/items/7" });
    assert.deepEqual([refused.status, refused.header("allow")], [405, "HEAD, GET"]);
    await eventually("three requests have ended", () => routes.length === 3);
    assert.deepEqual(routes, ["GET /shelf/items/:id", "* /shelf/*", "* /shelf/*"]);
    const http = server.host.exports<HttpModule>("http");
    const named = (list: readonly { method: string; path: string }[]) =>
      list.map(({ method, path }) => `${method} ${path}`);
    const own = http.routes().filter(({ app }) => app === "shelf");
    assert.deepEqual(named(own), ["* /shelf/*", "GET /shelf/", "GET /shelf/items/:id"]);
    assert.deepEqual(named(http.explain("GET", "/shelf/items/7").candidates), ["GET /shelf/items/:id"]);
    assert.deepEqual(named(http.explain("GET", "/shelf/nothing").candidates), ["* /shelf/*"]);
  });
});

describe("middleware functions in a provider", () => {
  overEach(host, "run in order", async (client) => {
    const reply = await client.request("/list/any/path");
    assert.deepEqual([reply.text, reply.header("x-order")], ["list", "first,second"]);
  });

  overEach(host, "see paths from where the app begins", async (client) => {
    const seen = await client.json("/plain");
    assert.deepEqual([seen.path, seen.url, seen.originalUrl, seen.mountPath], ["/", "/", "/plain", "/plain"]);
    const slash = await client.json("/plain/?a=1&b=%20");
    assert.deepEqual([slash.path, slash.url, slash.originalUrl], ["/", "/?a=1&b=%20", "/plain/?a=1&b=%20"]);
    assert.equal(await client.status("/plainer"), 404);
    for (const sent of ["/here/it%20is/a%2fb//c?q=1", "//here/it%20is/a%2fb//c?q=1"]) {
      const [path, url, originalUrl] = JSON.parse(await client.text(sent));
      assert.equal(originalUrl, sent);
      // The base has a blank, so that the rest is encoded again.
      assert.deepEqual([path, url], ["/a/b/c", "/a/b/c?q=1"]);
    }
    const doubled = await client.json({ path: "/plain//" });
    assert.equal(doubled.path, "/");
  });

  overEach(host, "know the client as the host does", async (client) => {
    const headers = { "x-forwarded-for": "203.0.113.9", "x-forwarded-proto": "https", "x-forwarded-host": "evil" };
    const seen = await client.json({ path: "/plain/", headers: { ...headers, host: "shop.example:81" } });
    // The loopback is a trusted proxy by default.
    assert.deepEqual([seen.ip, seen.secure, seen.protocol], ["203.0.113.9", true, "https"]);
    assert.deepEqual([seen.host, seen.href], ["shop.example:81", "https://shop.example:81/plain/"]);
    const plain = await client.json("/plain/");
    assert.deepEqual([plain.ip, plain.secure], ["127.0.0.1", client.secure]);
  });

  overEach(host, "throw to the error pages, and keep their headers", async (client) => {
    pages.length = 0;
    const teapot = await client.request("/plain/teapot");
    assert.equal(teapot.status, 418);
    assert.match(teapot.text, /short and stout/);
    assert.deepEqual(
      [teapot.header("x-kept"), teapot.header("x-spout"), teapot.header("content-type")],
      ["yes", "1", "text/html; charset=utf-8"],
    );
    const secret = await client.request("/plain/secret");
    assert.equal(secret.status, 503);
    assert.doesNotMatch(secret.text, /1234/);
    assert.equal(await client.status("/plain/broken"), 500);
    assert.match(host().log(), /broken on purpose/);
    assert.equal(await client.status("/plain/number"), 409);
    const forbidden = await client.request("/plain/forbidden");
    assert.deepEqual([forbidden.status, forbidden.header("x-kept")], [403, "yes"]);
    assert.match(forbidden.text, /<html/);
    assert.deepEqual(
      pages.map(({ code }) => code),
      [418, 503, 500, 409, 403],
    );
    const own = await client.request("/plain/own-page");
    assert.deepEqual([own.status, own.text], [404, "my own page"]);
  });

  overEach(host, "answer with every kind of body that Koa knows", async (client) => {
    const of = async (path: string) => {
      const reply = await client.request(path);
      return [reply.status, reply.header("content-type"), reply.header("content-length"), reply.text];
    };
    const text = "text/plain; charset=utf-8";
    assert.deepEqual(await of("/plain/empty"), [204, undefined, undefined, ""]);
    assert.deepEqual(await of("/plain/nothing"), [200, undefined, "0", ""]);
    assert.deepEqual(await of("/plain/phrase"), [202, text, "8", "Accepted"]);
    assert.deepEqual(await of("/plain/text"), [200, text, "9", "some text"]);
    assert.deepEqual(await of("/plain/bytes"), [200, "application/octet-stream", "3", "\0\x01\x02"]);
    assert.deepEqual(await of("/plain/stream"), [200, text, undefined, "one two three"]);
    assert.deepEqual(await of("/plain/sized"), [200, "application/octet-stream", "5", "12345"]);
    assert.deepEqual(await of("/plain/web"), [200, "application/octet-stream", undefined, "from a blob"]);
    assert.deepEqual(await of("/plain/blob"), [200, "text/x-blob; charset=utf-8", "6", "a blob"]);
    assert.deepEqual((await of("/plain/response")).toSpliced(1, 2), [203, "fetched"]);
    assert.deepEqual(await of("/plain/flushed"), [200, text, undefined, "after the head"]);
    assert.deepEqual((await of("/plain/raw")).at(-1), "written by hand");
    assert.deepEqual((await of("/plain/bypass")).at(-1), "later");
    const redirect = await client.request("/plain/redirect");
    assert.deepEqual([redirect.status, redirect.header("location")], [302, "/elsewhere"]);
    const cookies = await client.request("/plain/cookies");
    assert.equal(cookies.lines.filter(([name]) => name.toLowerCase() === "set-cookie").length, 2);
  });

  overEach(host, "have their validators respected, and HEAD without a body", async (client) => {
    const fresh = await client.request({ path: "/plain/text", headers: { "if-none-match": '"abc"' } });
    assert.deepEqual([fresh.status, fresh.header("etag"), fresh.text], [304, '"abc"', ""]);
    const head = await client.request({ method: "HEAD", path: "/plain/text" });
    assert.deepEqual([head.status, head.header("content-length"), head.text], [200, "9", ""]);
    const streamed = await client.request({ method: "HEAD", path: "/plain/sized" });
    assert.deepEqual([streamed.header("content-length"), streamed.text], ["5", ""]);
  });

  overEach(host, "have a stream that breaks midway cut, not completed", async (client) => {
    await assert.rejects(client.request("/plain/late"));
    assert.match(host().log(), /broken midway/);
  });

  overEach(
    host,
    "may tell the context of an error, though nobody listens for errors of an application",
    async (client) => {
      const uncaught: unknown[] = [];
      const note = (error: unknown) => void uncaught.push(error);
      process.on("uncaughtException", note);
      try {
        await assert.rejects(client.request("/plain/told"));
      } finally {
        process.off("uncaughtException", note);
      }
      assert.deepEqual(uncaught, []);
      const early = await client.request("/plain/told-early");
      assert.equal(early.status, 409);
      assert.match(early.text, /told before the answer/);
    },
  );

  overEach(host, "read the body themselves, in both directions at once", async (client) => {
    const pieces = Array.from({ length: 32 }, () => Buffer.alloc(1024, 7));
    const echoed = await client.request({ method: "POST", path: "/plain/unlike", body: Readable.from(pieces) });
    assert.deepEqual([echoed.status, echoed.bytes.length], [200, 32 * 1024]);
    const unread = await client.request({ method: "POST", path: "/plain/unread", body: Buffer.alloc(60_000) });
    assert.equal(unread.status, 401);
    assert.equal(await client.text("/plain/text"), "some text", "the connection goes on");
  });

  overEach(host, "are bound by http_max_content_size, unless they take uploads of any size", async (client) => {
    const big = Buffer.alloc(200 * 1024);
    const announced = await client.request({ method: "POST", path: "/plain/unlike", body: big });
    assert.equal(announced.status, 413);
    const pieces = () => Readable.from(Array.from({ length: 20 }, () => Buffer.alloc(10 * 1024)));
    const counted = await client.request({ method: "PUT", path: "/shop/items/3", body: pieces() });
    assert.equal(counted.status, 413);
    const upload = await client.request({ method: "POST", path: "/upload/x", body: pieces() });
    assert.equal(upload.status, 409);
    assert.match(upload.text, /POST 204800/);
  });

  overEach(host, "take compressed bodies, which handlers of routes do not", async (client) => {
    const headers = { "content-encoding": "gzip" };
    const reply = await client.request({ method: "POST", path: "/plain/unlike", headers, body: "not really" });
    assert.deepEqual([reply.status, reply.text], [200, "not really"]);
  });

  overEach(host, "reach the event of the host", async (client) => {
    assert.equal(await client.text("/plain/event"), "/plain/event false false");
  });

  overEach(host, "are in http-finished with status, bytes and app", async (client) => {
    const sent = { "/plain/raw": [207, 15], "/plain/bypass": [200, 5], "/shop/items": [200, undefined] } as const;
    for (const [path, [status, bytes]] of Object.entries(sent)) {
      const query = `${path}/?${client.name}`.replace("/?", "?");
      finished.length = 0;
      const reply = await client.request(query);
      const event = await finishOf(path);
      assert.deepEqual(
        [event.status, event.bytes, event.app, event.complete],
        [status, bytes ?? reply.bytes.length, path.split("/")[1], true],
      );
    }
  });
});

describe("routes beside middleware", () => {
  overEach(host, "come first", async (client) => {
    assert.equal(await client.text("/mixed/"), "the route's");
    assert.equal(await client.text("/mixed/x/1"), "the wildcard's");
    assert.equal(await client.text("/mixed/x/pass"), "GET /x/pass ");
    assert.equal(await client.text("/mixed/y"), "GET /y ");
    assert.equal(await client.text({ method: "PATCH", path: "/mixed/", body: "z" }), "PATCH / z");
    assert.equal(await client.text("/plain/deep/x"), "deep", "a route further down wins");
  });

  overEach(host, "hand on the body that they have read", async (client) => {
    assert.equal(await client.text({ method: "POST", path: "/mixed/echo", body: "twice" }), "POST /echo twice");
  });

  overEach(host, "say 405 where the middleware does not answer", async (client) => {
    assert.equal(await client.text({ method: "POST", path: "/mixed/only" }), "posted");
    const other = await client.request("/mixed/only");
    assert.deepEqual([other.status, other.header("allow")], [405, "OPTIONS, POST"]);
  });

  test("are listed with it, and explained", () => {
    const http = host().host.exports("http") as import("#core/http/index.ts").HttpModule;
    const listed = http.routes().filter(({ app }) => app === "mixed");
    assert.deepEqual(listed.at(-1), {
      method: "*",
      path: "/mixed/*",
      host: "*",
      app: "mixed",
      module: "mixed",
      kind: "middleware",
    });
    const { candidates, status } = http.explain("GET", "/mixed/only");
    assert.deepEqual(
      [candidates.map(({ kind, argument }) => [kind, argument]), status],
      [[["middleware", "only"]], 405],
    );
  });

  test("are not loaded when the middleware is invalid", async () => {
    assert.equal(await host().client("HTTP/1.1").status("/bad"), 404);
    assert.match(host().log(), /App bad: middleware is a Koa middleware function.*not number/);
    assert.equal(await host().client("HTTP/1.1").status("/empty"), 404);
    assert.match(host().log(), /App empty: middleware is .*not null/);
  });
});

describe("CORS of an app with middleware", () => {
  const origin = "https://app.example";

  overEach(host, "is the host's", async (client) => {
    for (const path of ["/cors/x", "/cors/raw"]) {
      const reply = await client.request({ path, headers: { origin } });
      assert.equal(reply.header("access-control-allow-origin"), origin);
      assert.match(reply.header("vary") ?? "", /(^|, )Origin$/);
      assert.equal(await client.status({ path, headers: { origin: "https://other.example" } }), 200);
    }
    const headers = { origin, "access-control-request-method": "PUT" };
    const preflight = await client.request({ method: "OPTIONS", path: "/cors/x", headers });
    assert.equal(preflight.status, 204);
    assert.equal(preflight.header("access-control-allow-methods"), "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT");
    assert.equal(await client.text({ method: "OPTIONS", path: "/cors/x" }), "OPTIONS");
  });
});

test("invalid CORS settings prevent the start, or the load of their module", async () => {
  for (const cors of [{ origins: {} }, { origins: "https://a.example" }, { enabled: "yes" }, { headers: ["X-A"] }]) {
    const load = serving({ cors: cors as never, route: { GET: "x" } });
    const modules = [{ name: "wrong", load }];
    await assert.rejects(createTestHost({ modules, listen: false }), /cors must be an object: \{ enabled: true, /);
  }
  const config = { http_cors_override: { one: { origins: {} } } };
  await assert.rejects(
    createTestHost({ config, modules: [{ name: "one", load: serving({ route: {} }) }], listen: false }),
    /http_cors_override\.one\.origins is \{\}, but it must be/,
  );
});

describe("CORS of responses that the host sends instead of an app", () => {
  const origin = "https://app.example";
  const config = { http_default_cors_enabled: true, access_control_allow_origins: [origin] };
  const provide = (more: Partial<HttpProvider> = {}) => serving({ route: { "GET /a": () => "a" }, ...more });

  test("follows the nearest app above a path that no route knows", async () => {
    await using server = await startHost({
      config,
      modules: {
        mod_root: provide({ default_path: "/" }),
        mod_one: provide(),
        mod_two: provide({ cors: { enabled: false } }),
        mod_three: provide({ default_path: "/one/three", cors: { enabled: true, origins: "*" } }),
      },
    });
    const allowed = async (path: string, method = "GET") => {
      const reply = await server.client("HTTP/1.1").request({ path, method, headers: { origin } });
      return [reply.status, reply.header("access-control-allow-origin"), /origin/i.test(reply.header("vary") ?? "")];
    };
    assert.deepEqual(await allowed("/one/b"), [404, origin, true]);
    assert.deepEqual(await allowed("/b/c"), [404, origin, true]);
    assert.deepEqual(await allowed("/two/b"), [404, undefined, false]);
    assert.deepEqual(await allowed("/one/three/b"), [404, "*", false]);
    assert.deepEqual(await allowed("/one/b/c"), [404, origin, true]);
    assert.deepEqual(await allowed("/one/a", "POST"), [405, origin, true]);
  });

  test("follows the app when middleware responds before it, and a page of another site may not read that", async () => {
    await using server = await startHost({
      config: { ...config, modules_enabled: ["http", "http_guard"], http_guard: { one: { deny: ["127.0.0.1"] } } },
      modules: { mod_one: provide() },
    });
    const preflight = { origin, "access-control-request-method": "GET" };
    for (const [method, headers, expected] of [
      ["GET", { origin }, origin],
      ["OPTIONS", preflight, origin],
      ["GET", { origin: "https://other.example" }, undefined],
    ] as const) {
      const reply = await server.client("HTTP/2").request({ path: "/one/a", method, headers });
      assert.deepEqual([reply.status, reply.header("access-control-allow-origin")], [403, expected]);
      assert.match(reply.header("vary") ?? "", /^origin$/i);
    }
  });
});

describe("clients of middleware", () => {
  test("that wait for 100 Continue get it when the body is read, and not before", async () => {
    using connection = await RawConnection.open(host().http);
    connection.write("PUT /shop/items/7 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    await connection.until(/^HTTP\/1.1 100 Continue\r\n\r\n$/);
    connection.write("{}");
    await connection.until(/HTTP\/1.1 201 /);
    using refused = await RawConnection.open(host().http);
    refused.write("PUT /plain/unread HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    await refused.until(/^HTTP\/1.1 401 .*401 Unauthorized/s);
    assert.doesNotMatch(await refused.end(), /100 Continue/);
  });
});
