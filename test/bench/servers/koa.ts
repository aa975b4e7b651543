import type { AddressInfo } from "node:net";
import Koa from "koa";
import { report } from "./report.ts";

const app = new Koa();
app.use((context) => {
  context.body = "hello";
});
const server = app.listen(0, "127.0.0.1", () => report((server.address() as AddressInfo).port));
