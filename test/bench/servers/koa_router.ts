import Router from "@koa/router";
import Koa from "koa";
import { listen } from "./listen.ts";
import { helloPaths } from "./paths.ts";

const app = new Koa();
const router = new Router();
for (const path of helloPaths()) {
  router.get(path, (context) => {
    context.body = "hello";
  });
}
app.use(router.routes());
listen(app.callback());
