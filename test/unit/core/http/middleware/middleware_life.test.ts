/**
 * Koa middleware over time: slow clients, clients that leave, and reload and unload of its module.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { constants } from "node:http2";
import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Context } from "koa";
import type { HttpEvent, MiddlewareFunction } from "#core/types.ts";
import type { NodeRequest } from "#core/util/node_messages.ts";
import { serving, startHost } from "#test/support/host.ts";
import { RawConnection } from "#test/support/raw.ts";
import { transports } from "#test/support/transports.ts";

describe("clients of middleware", () => {
  test("that send too slowly get a 408, and those that read too slowly are cut", async () => {
    const stuck = new PassThrough();
    await using slow = await startHost({
      config: { http_progress_timeout: 0.15, http_progress_bytes: 1024 },
      modules: {
        mod_slow: serving({
          async middleware(context) {
            if (context.method === "POST") context.body = await buffer(context.req);
            else if (context.path === "/raw") {
              (context as Context).respond = false;
              context.res.once("close", () => stuck.emit("cut"));
              Readable.from(endless()).pipe(context.res);
            }
          },
        }),
      },
    });
    using sender = await RawConnection.open(slow.http);
    sender.write("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n1");
    await sender.until(/^HTTP\/1.1 408 /);
    const cut = once(stuck, "cut");
    using reader = await RawConnection.open(slow.http);
    reader.socket.pause();
    reader.write("GET /slow/raw HTTP/1.1\r\nHost: x\r\n\r\n");
    await cut;
  });

  for (const name of transports)
    test(`may get their response later by Node.js's own objects, whose URL stays that of the middleware, over ${name}`, async () => {
      await using host = await startHost({
        modules: {
          mod_express: serving({
            middleware(context) {
              (context as Context).respond = false;
              setImmediate(() => {
                context.res.statusCode = 200;
                context.res.end(context.req.url);
              });
            },
          }),
        },
      });
      const received = await host.client(name).request("/express/body?x");
      assert.deepEqual([received.status, received.text], [200, "/body?x"]);
    });

  for (const name of transports)
    test(`that leave end the stream that they were reading over ${name}`, async () => {
      const seen = new PassThrough();
      await using leaving = await startHost({
        modules: {
          mod_endless: serving({
            middleware(context) {
              const body = Readable.from(endless(() => seen.emit("begun")));
              body.once("close", () => seen.emit("closed"));
              context.body = body;
            },
          }),
        },
      });
      const begun = once(seen, "begun");
      const closed = once(seen, "closed");
      const there = leaving.client(name);
      const requested = there.request("/endless").catch(() => undefined);
      await begun;
      there.close();
      await Promise.all([closed, requested]);
    });

  /**
   * Puts the connection or stream of a request into one of two states: each lasts for a moment at
   * the end of a request, until the host notices that end.
   */
  const states = {
    closed: (request: NodeRequest) =>
      "stream" in request ? request.stream.close(constants.NGHTTP2_CANCEL) : request.socket.destroy(),
    "no longer writable": (request: NodeRequest) =>
      "stream" in request ? request.stream.close(constants.NGHTTP2_NO_ERROR) : request.socket.end(),
  };
  const cases = transports.flatMap((name) => Object.entries(states).map(([state, leave]) => ({ name, state, leave })));
  for (const { name, state, leave } of cases)
    test(`whose connection is ${state} when it responds over ${name} cause no error`, async () => {
      await using left = await startHost({
        modules: {
          mod_late: serving({
            middleware(context) {
              leave(context.req as NodeRequest);
              context.body = new PassThrough();
            },
          }),
        },
      });
      const there = left.client(name);
      await there.request("/late").catch(() => undefined);
      there.close();
      await left.stop();
      assert.doesNotMatch(left.log(), /failed|PREMATURE/);
    });

  for (const tls of [false, true])
    test(`that have ended their side before it responds get their response${tls ? " under TLS" : ""}`, async () => {
      const requested = new PassThrough();
      await using left = await startHost({
        modules: {
          mod_late: serving({
            async middleware(context) {
              const ended = once(context.req.socket, "end");
              requested.emit("asked");
              await ended;
              context.body = Readable.from(["late"]);
            },
          }),
        },
      });
      const isRequested = once(requested, "asked");
      using connection = await RawConnection.open(tls ? left.https : left.http, { tls });
      connection.write("GET /late HTTP/1.1\r\nHost: x\r\n\r\n");
      await isRequested;
      connection.socket.end();
      assert.match(await connection.end(), /late/);
      await left.stop();
      assert.doesNotMatch(left.log(), /failed|PREMATURE/);
    });
});

async function* endless(taken = () => false): AsyncGenerator<Buffer> {
  for (;;) {
    yield Buffer.alloc(64 * 1024);
    taken();
    await new Promise(setImmediate);
  }
}

test("do not send a body again that middleware has read and passed on", async () => {
  await using running = await startHost({
    modules: {
      mod_greedy: serving({
        async middleware({ req }, next) {
          await buffer(req);
          await next();
        },
      }),
      mod_rest: serving({ default_path: "/", route: { "POST /*": ({ request }) => request.body } }),
    },
  });
  const client = running.client("HTTP/1.1");
  assert.equal(await client.text({ method: "POST", path: "/x", body: "read" }), "read");
  assert.equal(await client.status({ method: "POST", path: "/greedy", body: "read" }), 500);
  assert.match(running.log(), /The request body has been read already/);
});

for (const name of transports)
  test(`get a 503 from middleware that waits for its module to leave over ${name}`, async () => {
    const entered = new PassThrough();
    const middleware: MiddlewareFunction = async ({ state }) => {
      entered.emit("in");
      await delay(60_000, undefined, { signal: (state as { event: HttpEvent }).event.request.leaving });
    };
    await using running = await startHost({ modules: { mod_wait: serving({ middleware }) } });
    const inside = once(entered, "in");
    const reply = running.client(name).request("/wait");
    await inside;
    await running.host.unload("wait");
    assert.equal((await reply).status, 503);
    assert.doesNotMatch(running.log(), /failed/);
  });

test("have their requests ended when the module with the middleware is unloaded", async () => {
  let open: (() => void) | undefined;
  const entered = new PassThrough();
  await using running = await startHost({
    plugins: {
      mod_koa: `import Koa from ${JSON.stringify(import.meta.resolve("koa"))};
        export default (module) => {
          const app = new Koa();
          app.use(async (context) => {
            await globalThis.gate?.(context);
            context.body = "version " + (module.reloading ?? "one");
          });
          module.depends("http");
          module.provides("http", { middleware: app });
        };`,
    },
    config: { modules_enabled: ["koa"] },
  });
  const client = running.client("HTTP/1.1");
  assert.equal(await client.status("/koa"), 200);
  Object.assign(globalThis, {
    gate: () => {
      entered.emit("in");
      return new Promise<void>((resolve) => {
        open = resolve;
      });
    },
  });
  try {
    const inside = once(entered, "in");
    const inFlight = client.request("/koa/x");
    await inside;
    const reload = running.host.reload("koa");
    open?.();
    assert.equal((await inFlight).status, 200);
    await reload;
    const again = once(entered, "in");
    const last = client.request("/koa/x");
    await again;
    const unload = running.host.unload("koa");
    assert.equal(await client.status("/koa/y"), 404, "no new request reaches it");
    open?.();
    assert.equal((await last).status, 200);
    await unload;
    assert.deepEqual(
      running.host.modules().filter(({ name }) => name === "koa"),
      [],
    );
  } finally {
    Reflect.deleteProperty(globalThis, "gate");
  }
});
