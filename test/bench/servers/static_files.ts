/**
 * A plain file server: opens the file that the path names, sets its type, and pipes it or a range
 * of it.
 */
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join, normalize } from "node:path";
import { report } from "./report.ts";

const folder = process.env.BENCH_FOLDER ?? "";

async function serve({ url = "/", headers }: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(url, "http://localhost");
  const file = await open(join(folder, normalize(decodeURIComponent(pathname))));
  const { size, mtime } = await file.stat();
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "") ?? [];
  const [start, end] = from === undefined ? [0, size - 1] : [Number(from), Math.min(Number(to), size - 1)];
  response.writeHead(from === undefined ? 200 : 206, {
    "content-type": "application/octet-stream",
    "content-length": end - start + 1,
    "accept-ranges": "bytes",
    "last-modified": mtime.toUTCString(),
    etag: `"${size.toString(16)}-${mtime.getTime().toString(16)}"`,
    ...(from !== undefined && { "content-range": `bytes ${start}-${end}/${size}` }),
  });
  createReadStream("", { fd: file, start, end }).pipe(response);
}

const server = createServer((request, response) => {
  serve(request, response).catch(() => response.writeHead(404).end());
});
server.listen(0, "127.0.0.1", () => report((server.address() as AddressInfo).port));
