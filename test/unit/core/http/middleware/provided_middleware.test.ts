/** Koa middleware that a module provides to run before apps. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, test } from "node:test";
import { gunzipSync } from "node:zlib";
import compress from "koa-compress";
import { event_stream, type HttpModule } from "#core/http/index.ts";
import { assertNothingLeft } from "#core/testing/index.ts";
import type { HttpFinishedEvent, MiddlewareFunction, Module, PooledBody } from "#core/types.ts";
import { serving, startHost } from "#test/support/host.ts";
import { SocketClient } from "#test/support/websocket.ts";
import { hello } from "./middleware_apps.ts";

describe('provides("http-middleware")', () => {
  const guarding = (version: string) => `import compress from ${JSON.stringify(import.meta.resolve("koa-compress"))};
    import helmet from ${JSON.stringify(import.meta.resolve("koa-helmet"))};
    export default (module) => {
      module.provides("http-middleware", { middleware: [helmet(), compress({ threshold: 10 })], name: "guard" });
      module.provides("http-middleware", {
        apps: ["hello"],
        order: 5,
        middleware: async function versioned(context, next) {
          await globalThis.gate?.(context);
          await next();
          context.set("X-Version", "${version}");
        },
      });
    };`;

  test("runs while its module is loaded, is replaced by a reload, and is gone after unload", async () => {
    await using host = await startHost({
      plugins: { mod_hello: hello, mod_guard: guarding("one") },
      config: { modules_enabled: ["http", "hello", "guard"] },
    });
    const http = host.host.exports<HttpModule>("http");
    const client = host.client("HTTP/1.1");
    const seen = async () => {
      const reply = await client.request({ path: "/hello/long", headers: { "Accept-Encoding": "gzip" } });
      return [
        reply.status,
        reply.header("x-version"),
        reply.header("x-frame-options"),
        reply.header("content-encoding"),
      ];
    };
    assert.deepEqual(await seen(), [200, "one", "SAMEORIGIN", "gzip"]);
    const names = () => http.explain("GET", "/hello").middleware.map(({ name, module }) => `${module} ${name}`);
    assert.deepEqual(names(), ["guard guard", "guard versioned"]);
    await writeFile(join(host.folder, "plugins", "mod_guard.js"), guarding("two"));
    await host.host.reload("guard");
    assert.deepEqual(await seen(), [200, "two", "SAMEORIGIN", "gzip"]);
    assert.deepEqual(names(), ["guard guard", "guard versioned"]);
    await host.host.unload("guard");
    assertNothingLeft(host.host, "guard");
    assert.deepEqual(await seen(), [200, undefined, undefined, undefined]);
    assert.deepEqual(names(), []);
  });

  test("delays its unload until the requests in it are over", async () => {
    const entered = new PassThrough();
    let open: (() => void) | undefined;
    Object.assign(globalThis, {
      gate: () => {
        entered.emit("in");
        return new Promise<void>((resolve) => {
          open = resolve;
        });
      },
    });
    try {
      await using host = await startHost({
        plugins: { mod_hello: hello, mod_guard: guarding("one") },
        config: { modules_enabled: ["http", "hello", "guard"] },
      });
      const client = host.client("HTTP/1.1");
      const inside = once(entered, "in");
      const inFlight = client.request("/hello/");
      await inside;
      const unload = host.host.unload("guard");
      const later = await host.client("HTTP/1.1").request("/hello/");
      assert.deepEqual([later.status, later.header("x-version")], [200, undefined], "new requests do without it");
      open?.();
      assert.equal((await inFlight).header("x-version"), "one");
      await unload;
    } finally {
      Reflect.deleteProperty(globalThis, "gate");
    }
  });

  const before = (middleware: MiddlewareFunction) => (module: Module) =>
    module.provides("http-middleware", { middleware });

  test("gets an error page when it throws, and its module is named in the log", async () => {
    await using host = await startHost({
      modules: {
        mod_hello: serving({ route: { "GET /": () => "hello" } }),
        mod_throws: before((context) => {
          if (context.path === "/hello/x") context.throw(418, "no tea");
          throw new Error("broken in middleware");
        }),
      },
      config: { modules_enabled: ["http_errors"] },
    });
    const client = host.client("HTTP/1.1");
    const broken = await client.request("/hello/");
    assert.equal(broken.status, 500);
    assert.doesNotMatch(broken.text, /broken in middleware/);
    assert.match(host.log(), /"module":"throws".*broken in middleware/);
    const refused = await client.request("/hello/x");
    assert.deepEqual([refused.status, /no tea/.test(refused.text)], [418, true]);
  });

  test("may respond instead of the apps, and change their responses", async () => {
    const finished: HttpFinishedEvent[] = [];
    await using host = await startHost({
      modules: {
        mod_hello: serving({ route: { "GET /": () => "hello", "GET /json": () => ({ body: '{"a":1}' }) } }),
        mod_seen: (module) => module.hook("http-finished", (event) => void finished.push(event)),
        mod_changes: before(async (context, next) => {
          if (context.path === "/hello/closed") {
            context.body = { closed: true };
            return;
          }
          await next();
          if (context.status === 200) context.body = `${context.body}!`;
        }),
      },
    });
    const client = host.client("HTTP/1.1");
    assert.equal(await client.text("/hello/"), "hello!");
    assert.equal(await client.text("/hello/json"), '{"a":1}!');
    assert.deepEqual(await client.json("/hello/closed"), { closed: true });
    assert.deepEqual(finished.map(({ bytes, complete }) => [bytes, complete])[0], [6, true]);
  });

  test("gets bodies in pieces, which return to their owner unchanged, compressed or not", async () => {
    const pieces = 20;
    let back = 0;
    const leased = (): PooledBody => ({
      async *[Symbol.asyncIterator]() {
        const buffer = Buffer.alloc(50_000);
        for (let at = 0; at < pieces; at += 1) {
          const isFree = back % pieces === at % pieces;
          const piece = isFree ? buffer : Buffer.alloc(50_000);
          yield piece.fill(`piece ${at} `);
        }
      },
      release(piece) {
        piece.fill(0xff);
        back += 1;
      },
    });
    await using host = await startHost({
      modules: {
        mod_pooled: serving({
          route: { "GET /": () => ({ headers: { content_type: "text/plain" }, body: leased() }) },
        }),
        mod_packs: before(compress()),
      },
    });
    const whole = Array.from({ length: pieces }, (_, at) => Buffer.alloc(50_000, `piece ${at} `).toString()).join("");
    const client = host.client("HTTP/1.1");
    assert.equal(await client.text("/pooled/"), whole);
    assert.equal(back, pieces);
    const packed = await client.request({ path: "/pooled/", headers: { "Accept-Encoding": "gzip" } });
    assert.equal(gunzipSync(packed.bytes).toString(), whole);
    assert.equal(back, 2 * pieces);
  });

  test("does not delay server-sent events, however it compresses", async () => {
    await using host = await startHost({
      modules: {
        mod_news: serving({
          route: {
            "GET /": (event) => {
              void event_stream(event).send("at once");
              return true;
            },
          },
        }),
        mod_packs: before(compress({ threshold: 0 })),
      },
    });
    const response = await fetch(`http://127.0.0.1:${host.http}/news/`, { headers: { "Accept-Encoding": "gzip" } });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const { value } = await reader.read();
    assert.match(Buffer.from(value ?? []).toString(), /^data: ?at once/);
    assert.equal(response.headers.get("content-encoding"), null);
    await reader.cancel();
  });

  test("runs before websockets: it may refuse them, and its headers are sent with the 101", async () => {
    await using host = await startHost({
      modules: {
        mod_chat: serving({
          route: {
            "WS /": async (event) => {
              const socket = event.accept();
              for await (const message of socket) await socket.send(message);
            },
          },
        }),
        mod_check: before(async (context, next) => {
          if (context.get("X-Key") !== "open") context.throw(401);
          context.set("X-Door", "passed");
          await next();
        }),
      },
    });
    const url = `http://127.0.0.1:${host.http}/chat`;
    await assert.rejects(SocketClient.open(url), /401/);
    using client = await SocketClient.open(url, { headers: { "X-Key": "open" } });
    client.send("there?");
    assert.equal(await client.next(), "there?");
  });

  test("is refused together with its module when it has the wrong form", async () => {
    await using host = await startHost({
      modules: {
        mod_wrong: (module) => module.provides("http-middleware", { middleware: "koa" as never }),
        mod_hello: serving({ route: { "GET /": () => "hello" } }),
      },
    });
    assert.match(
      host.host.modules().find(({ name }) => name === "wrong")?.note ?? "",
      /middleware is a Koa middleware/,
    );
    assert.equal(await host.client("HTTP/1.1").text("/hello/"), "hello");
  });
});
