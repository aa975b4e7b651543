/** Bare Koa, or with the app that BENCH_APP names: koa-static, or a parser for JSON bodies. */
import Koa, { type Middleware } from "koa";
import serveStatic from "koa-static";
import { jsonOf } from "./json_by_hand.ts";
import { listen } from "./listen.ts";

const apps: Readonly<Record<string, () => Middleware>> = {
  hello: () => (context) => {
    context.body = "hello";
  },
  files: () => serveStatic(process.env.BENCH_FOLDER ?? ""),
  json: () => async (context) => {
    context.body = await jsonOf(context.req);
  },
  nothing: () => (_context, next) => next(),
};

const app = new Koa();
app.use((apps[process.env.BENCH_APP ?? "hello"] as () => Middleware)());
listen(app.callback());
