/**
 * Each request has one Koa context: before the apps, in the routes of any app, and in the
 * middleware of an app.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import Koa, { type Context } from "koa";
import { contextOf, koaHandler } from "#core/http/index.ts";
import type { HttpEvent, MiddlewareFunction } from "#core/types.ts";
import { serving, startHost, type TestHost } from "#test/support/host.ts";
import { overEach } from "#test/support/transports.ts";

const contexts: unknown[] = [];
const note: MiddlewareFunction = (context, next) => {
  contexts.push(context);
  return next();
};

/** A whole application that adds its own members to its contexts. */
function whole(): Koa {
  const app = new Koa();
  Object.assign(app.context, { source: "the application" });
  app.use((context) => {
    const { source, user, session, mountPath } = context;
    context.session = { visits: session.visits + 1 };
    context.state.app = "whole";
    context.added = true;
    const { body } = context.request as { body?: unknown };
    context.body = { source, user, session, body, state: context.state.user, mountPath };
  });
  return app;
}

/** Adds to a context what sessions, body parsers and sign-ins add, in all their ways. */
async function prepared(context: Context, next: () => Promise<unknown>): Promise<void> {
  const koa = Object.getPrototypeOf(context);
  koa.source ??= "the host";
  if (!("session" in koa)) {
    const sessions = new WeakMap<object, unknown>();
    Object.defineProperty(koa, "session", {
      get(this: object) {
        return sessions.get(this);
      },
      set(this: object, session: unknown) {
        sessions.set(this, session);
      },
    });
  }
  context.session = { visits: 1 };
  context.user = "Ann";
  context.state.user = "Ann";
  Object.assign(context.request, { body: { parsed: true } });
  await next();
  context.set("X-After", JSON.stringify([context.session, context.state.app, context.mountPath, context.path]));
}

describe("koaHandler", () => {
  let host: TestHost;
  before(async () => {
    host = await startHost({
      modules: {
        mod_before: (module) => module.provides("http-middleware", { middleware: note }),
        mod_prepared: (module) =>
          module.provides("http-middleware", { middleware: prepared as MiddlewareFunction, apps: ["whole"] }),
        mod_whole: serving({ middleware: whole() as never }),
        mod_routes: serving({
          route: {
            "GET /same": (event: HttpEvent) => {
              contexts.push(contextOf(event));
              const response: MiddlewareFunction = (context) => {
                contexts.push(context);
                context.body = { path: context.path, url: context.url };
              };
              return koaHandler(note, response)(event, undefined);
            },
            "GET /two": koaHandler(
              async (context, next) => {
                context.set("X-First", "1");
                await next();
                context.body = `${context.body} and the first`;
              },
              (context) => {
                context.body = "the second";
              },
            ),
            "GET /throws": koaHandler((context) => context.throw(409, "not like this")),
            "GET /empty": koaHandler((context) => {
              context.status = 204;
            }),
            "GET /state": koaHandler((context) => {
              const { event } = (context as Context).state as { event: HttpEvent };
              context.body = event.request.path;
            }),
            "POST /echo": koaHandler(async (context) => {
              const pieces: Buffer[] = [];
              for await (const piece of context.req) pieces.push(piece as Buffer);
              context.body = Buffer.concat(pieces);
            }),
            "GET /passes": koaHandler((context, next) => {
              context.set("X-Passed", "1");
              return next();
            }),
            "GET /passes/*": () => "exact routes go before",
          },
          middleware: (context, next) => {
            contexts.push(context);
            if (context.path === "/passes") context.body = `by the middleware at ${context.mountPath}`;
            else return next();
          },
        }),
      },
    });
  });
  after(() => host.stop());

  overEach(
    () => host,
    "sees the request's own context, as it came",
    async (client) => {
      contexts.length = 0;
      const path = "/routes/same?x=1";
      assert.deepEqual(await client.json(path), { path: "/routes/same", url: path });
      assert.deepEqual([contexts.length, new Set(contexts).size], [4, 1]);
    },
  );

  overEach(
    () => host,
    "answers, fails, reads bodies and leaves requests as a handler does",
    async (client) => {
      const two = await client.request("/routes/two");
      assert.deepEqual([two.text, two.header("x-first")], ["the second and the first", "1"]);
      const thrown = await client.request("/routes/throws");
      assert.deepEqual([thrown.status, /not like this/.test(thrown.text)], [409, true]);
      const empty = await client.request("/routes/empty");
      assert.deepEqual([empty.status, empty.bytes.length], [204, 0]);
      assert.equal(await client.text("/routes/state"), "/routes/state");
      assert.equal(await client.text({ method: "POST", path: "/routes/echo", body: "said" }), "said");
      const passed = await client.request("/routes/passes");
      assert.deepEqual([passed.text, passed.header("x-passed")], ["exact routes go before", "1"]);
    },
  );

  overEach(
    () => host,
    "a whole application sees what middleware before it has put on the context, and that middleware what it changes",
    async (client) => {
      const reply = await client.request("/whole/x");
      assert.deepEqual(JSON.parse(reply.text), {
        source: "the application",
        user: "Ann",
        session: { visits: 1 },
        body: { parsed: true },
        state: "Ann",
        mountPath: "/whole",
      });
      assert.deepEqual(JSON.parse(reply.header("x-after") ?? ""), [{ visits: 2 }, "whole", null, "/whole/x"]);
    },
  );

  test("a body over the limit is refused while it is read", async () => {
    await using small = await startHost({
      config: { http_max_content_size: 10 },
      modules: {
        mod_reads: serving({
          streaming_uploads: true,
          route: {
            "POST /": koaHandler(async (context) => {
              for await (const _ of context.req);
              context.body = "all of it";
            }),
          },
        }),
      },
    });
    const client = small.client("HTTP/1.1");
    assert.equal(await client.status({ method: "POST", path: "/reads/", body: "x".repeat(100) }), 413);
    assert.equal(await client.text({ method: "POST", path: "/reads/", body: "few" }), "all of it");
  });

  test("a list with a value that is not a function is refused at once", () => {
    assert.throws(() => koaHandler("no" as never), /not string/);
  });

  test("a request from elsewhere has no context", () => {
    assert.throws(() => contextOf({ request: {} as HttpEvent["request"] }), /did not come through the host/);
  });
});
