/**
 * Checked by the compiler only: the values that a provider accepts as `middleware`, with Koa's
 * types and without them.
 */
import Router from "@koa/router";
import Koa, { type Context, type Next } from "koa";
import type { Middleware, Module } from "modhost/types";

export function takes(module: Module): void {
  const app = new Koa<{ user: string }>();
  app.use(async (context, next) => {
    context.state.user = "ada";
    await next();
  });
  const router = new Router();
  router.get("/x", (context) => {
    context.body = { x: 1 };
  });
  const typed = async (context: Context, next: Next) => {
    await next();
    context.set("X-Time", "1");
  };
  module.provides("http", { middleware: app });
  module.provides("http", { middleware: router.routes() });
  module.provides("http", { middleware: [typed, router.routes(), router.allowedMethods()] });
  module.provides("http", {
    // The context has a type even without Koa's types.
    middleware(context, next) {
      if (context.path === "/") context.body = context.ip;
      else return next();
    },
  });
  module.provides("http", { middleware: typed, route: { "GET /*": (_event, path) => path.length } });
  const given: Middleware = [typed];
  module.provides("http", { middleware: given, default_path: "/", streaming_uploads: true });
}

export function refuses(module: Module): void {
  // @ts-expect-error: neither routes nor middleware
  module.provides("http", { default_path: "/" });
  // @ts-expect-error: no middleware
  module.provides("http", { middleware: "koa" });
  // @ts-expect-error: a list with something else in it
  module.provides("http", { middleware: [3] });
  // @ts-expect-error: the keys of routes are checked beside middleware, too
  module.provides("http", { middleware: () => undefined, route: { GETX: () => "x" } });
}
