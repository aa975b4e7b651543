import { Readable } from "node:stream";
import Router from "@koa/router";
import Koa, { type Context, type Next } from "koa";
import type { HttpErrorEvent, HttpEvent, HttpFinishedEvent, Module } from "#core/types.ts";
import { serving, withHost } from "#test/support/host.ts";

export const finished: HttpFinishedEvent[] = [];
export const pages: HttpErrorEvent[] = [];
export const reported: unknown[] = [];

/** Returns the `http-finished` event of a request that is sent meanwhile. */
export async function finishOf(path: string): Promise<HttpFinishedEvent> {
  for (;;) {
    const found = finished.find(({ request }) => request.url.raw_path === path);
    if (found !== undefined) return found;
    await new Promise(setImmediate);
  }
}

export async function bytesOf(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** A JSON API as one would write it without this host. */
export function shop(): Koa {
  const app = new Koa();
  app.on("error", (error) => reported.push(error));
  app.use(async (context, next) => {
    await next();
    context.set("X-Time", "1");
  });
  const router = new Router();
  const items = new Map([["1", { id: "1", name: "tea" }]]);
  router.get("/items", (context) => {
    context.body = [...items.values()];
  });
  router.get("/items/:id", (context) => {
    context.body = items.get(String(context.params.id)) ?? context.throw(404, "No such item");
  });
  router.put("/items/:id", async (context) => {
    const item = JSON.parse((await bytesOf(context.req)).toString());
    items.set(String(context.params.id), item);
    context.status = 201;
    context.body = item;
  });
  router.delete("/items/:id", (context) => {
    context.body = null;
  });
  app.use(router.routes()).use(router.allowedMethods());
  return app;
}

export async function* failing(): AsyncGenerator<string> {
  yield "begun ";
  throw new Error("broken midway");
}

export const responses: Record<string, (context: Context, next: Next) => unknown> = {
  "/": (context) => {
    const { path, url, originalUrl, mountPath, ip, secure, protocol, host, href } = context;
    context.body = { path, url, originalUrl, mountPath, ip, secure, protocol, host, href };
  },
  "/teapot": (context) => {
    context.set("X-Kept", "yes");
    context.set("Content-Type", "application/x-lost");
    context.throw(418, "short and stout", { headers: { "X-Spout": "1" } });
  },
  "/secret": (context) => context.throw(503, "database password is 1234"),
  "/broken": () => {
    throw new Error("broken on purpose");
  },
  "/number": () => Promise.reject(409),
  "/forbidden": (context) => {
    context.set("X-Kept", "yes");
    context.status = 403;
  },
  "/own-page": (context) => {
    context.status = 404;
    context.body = "my own page";
  },
  "/empty": (context) => {
    context.status = 204;
  },
  "/nothing": (context) => {
    context.status = 200;
    context.body = null;
    context.status = 200;
  },
  "/phrase": (context) => {
    context.status = 202;
  },
  "/text": (context) => {
    context.etag = "abc";
    context.status = 200;
    context.body = "some text";
    if (context.fresh) context.status = 304;
  },
  "/bytes": (context) => {
    context.body = Buffer.from([0, 1, 2]);
  },
  "/cookies": (context) => {
    context.cookies.set("a", "1");
    context.cookies.set("b", "2");
    context.body = "set";
  },
  "/redirect": (context) => context.redirect("/elsewhere"),
  "/stream": (context) => {
    context.type = "text/plain";
    context.body = Readable.from(["one ", "two ", "three"]);
  },
  "/sized": (context) => {
    context.length = 5;
    context.body = Readable.from(["12345"]);
  },
  "/web": (context) => {
    context.body = new Blob(["from a blob"], { type: "text/plain" }).stream();
  },
  "/blob": (context) => {
    context.body = new Blob(["a blob"], { type: "text/x-blob" });
  },
  "/response": (context) => {
    context.body = new Response("fetched", { status: 203, headers: { "X-From": "afar" } });
  },
  "/late": (context) => {
    context.body = Readable.from(failing());
  },
  "/told": (context) => {
    // Koa 2 does this for every stream.
    const body = Readable.from(failing()).once("error", (error) => context.onerror(error));
    context.body = body;
  },
  "/told-early": (context) => {
    context.onerror(Object.assign(new Error("told before the answer"), { status: 409, expose: true }));
    context.body = "too late";
  },
  "/flushed": (context) => {
    context.status = 200;
    context.type = "text/plain";
    context.flushHeaders();
    context.body = Readable.from(["after ", "the head"]);
  },
  "/raw": (context) => {
    context.res.statusCode = 207;
    context.res.setHeader("X-Raw", "1");
    context.res.write("written ");
    context.res.end("by hand");
  },
  "/bypass": (context) => {
    context.respond = false;
    const { res } = context;
    setImmediate(() => {
      res.writeHead(200, { "content-type": "text/plain" });
      res.end("later");
    });
  },
  "/unlike": (context) => {
    context.body = context.req;
  },
  "/unread": (context) => {
    context.status = 401;
  },
  "/event": (context) => {
    const { request } = (context.state as { event: HttpEvent }).event;
    context.body = `${request.path} ${request.signal.aborted} ${request.leaving.aborted}`;
  },
};

export const host = withHost({
  config: {
    modules_enabled: ["http_errors"],
    http_max_content_size: 64 * 1024,
    http_paths: { moved: "/here/it is" },
    hosts: undefined,
  },
  modules: {
    mod_watch(module: Module) {
      module.set_global();
      module.hook("http-finished", (event) => void finished.push(event));
      module.hook("http-error", (event) => void pages.push(event), 10);
    },
    mod_shop: serving({ middleware: shop() }),
    mod_plain: serving({
      middleware: (context, next) => (responses[context.path] ?? (() => next()))(context as Context, next),
    }),
    mod_list: serving({
      middleware: [
        async (context, next) => {
          context.state = { order: ["first"] };
          await next();
          context.set("X-Order", (context.state as { order: string[] }).order.join());
        },
        (context) => {
          (context.state as { order: string[] }).order.push("second");
          context.body = "list";
        },
      ],
    }),
    mod_mixed: serving({
      route: {
        "GET /": () => "the route's",
        "GET /x/*": (_event, path) => (path === "pass" ? undefined : "the wildcard's"),
        "POST /echo": () => undefined,
        "POST /only": () => "posted",
      },
      async middleware(context, next) {
        if (context.path === "/only") return next();
        context.body = `${context.method} ${context.path} ${await bytesOf(context.req)}`;
      },
    }),
    mod_moved: serving({
      middleware: (context) => void (context.body = [context.path, context.url, context.originalUrl]),
    }),
    mod_deep: serving({ route: { "GET /*": () => "deep" }, default_path: "/plain/deep" }),
    mod_upload: serving({
      streaming_uploads: true,
      async middleware({ req, method }: Context) {
        let size = 0;
        for await (const chunk of req) size += (chunk as Buffer).length;
        throw Object.assign(new Error(`${method} ${size}`), { status: 409, expose: true });
      },
    }),
    mod_cors: serving({
      cors: { enabled: true, origins: ["https://app.example"] },
      middleware(context) {
        if (context.path === "/raw") {
          (context as Context).respond = false;
          context.res.writeHead(200).end("raw");
          return;
        }
        context.set("Vary", "Accept");
        context.body = context.method;
      },
    }),
    mod_bad: serving({ middleware: [3] as never, route: { GET: () => "never" } }),
    mod_empty: serving({ middleware: null as never, route: { GET: () => "never" } }),
  },
});
