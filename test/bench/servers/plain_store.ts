/**
 * The least that storing and serving a file can cost: a body is read, hashed in pieces of 256 KiB and appended to a
 * file, which is brought to the disk once; the file is piped back. Answers as the API does, as far as it is asked.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { report } from "./report.ts";

const pieceBytes = 256 * 1024;
const file = join(process.env.BENCH_FOLDER ?? "", "plain");

async function store(request: IncomingMessage): Promise<string> {
  const handle = await open(file, "w");
  let digest = "";
  let held: Buffer[] = [];
  let bytes = 0;
  let writing: Promise<unknown> | undefined;
  const flush = async () => {
    const hash = createHash("sha256");
    for (const chunk of held) hash.update(chunk);
    digest = hash.digest("hex");
    await writing;
    writing = handle.writev(held);
    held = [];
    bytes = 0;
  };
  for await (const chunk of request as AsyncIterable<Buffer>) {
    held.push(chunk);
    bytes += chunk.length;
    if (bytes >= pieceBytes) await flush();
  }
  await flush();
  await writing;
  await handle.datasync();
  await handle.close();
  return digest;
}

const server = createServer(async (request, response) => {
  if (/^\/api\/v0\/(cat|dag\/export)/.test(request.url ?? "")) createReadStream(file).pipe(response);
  else response.end(`{"Hash":"${await store(request)}"}\n`);
});
server.listen(0, "127.0.0.1", () => report((server.address() as AddressInfo).port));
