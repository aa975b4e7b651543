import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { report } from "./report.ts";

const server = createServer((_request, response) => {
  response.writeHead(200, { "Content-Type": "text/plain; charset=utf-8", "Content-Length": 5 });
  response.end("hello");
});
server.listen(0, "127.0.0.1", () => report((server.address() as AddressInfo).port));
