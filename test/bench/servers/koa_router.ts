import type { AddressInfo } from "node:net";
import Router from "@koa/router";
import Koa from "koa";
import { report } from "./report.ts";

const app = new Koa();
const router = new Router();
for (let index = 0; index < 150; index += 1) {
  router.get(`/app${index}/hello`, (context) => {
    context.body = "hello";
  });
}
app.use(router.routes());
const server = app.listen(0, "127.0.0.1", () => report((server.address() as AddressInfo).port));
