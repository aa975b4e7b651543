/**
 * Serves BENCH_ROUTES hello routes, echoes JSON at /json, and serves files with code of its own,
 * because fastify's plugin for them is not installed.
 */
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join, normalize } from "node:path";
import Fastify from "fastify";
import { certificate, KEEP_ALIVE_MS, speaksHttp2 } from "./listen.ts";
import { helloPaths } from "./paths.ts";
import { report } from "./report.ts";

const app = Fastify({
  logger: process.env.LOGGER === "on",
  keepAliveTimeout: KEEP_ALIVE_MS,
  ...((certificate &&
    (speaksHttp2 ? { http2: true, https: { ...certificate, allowHTTP1: true } } : { https: certificate })) as object),
});
for (const path of helloPaths()) app.get(path, async () => "hello");
app.post("/json", async ({ body }) => body);
app.get("/files/*", async (request, reply) => {
  const { "*": name } = request.params as Record<"*", string>;
  const file = await open(join(process.env.BENCH_FOLDER ?? "", normalize(name)));
  const { size, mtime } = await file.stat();
  reply.headers({
    "content-type": "application/octet-stream",
    "content-length": size,
    "last-modified": mtime.toUTCString(),
    etag: `"${size.toString(16)}-${mtime.getTime().toString(16)}"`,
  });
  return reply.send(createReadStream("", { fd: file }));
});
await app.listen({ port: 0, host: "127.0.0.1" });
report((app.server.address() as AddressInfo).port);
