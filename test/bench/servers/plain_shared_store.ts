/**
 * The minimum cost of storing a file in an object store. A body is read, hashed in pieces of 256
 * KiB, appended to a file, and sent to the object store in objects of 64 MiB while the next one
 * fills. The response is that of the API, once everything is stored.
 */
import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type BareStore, putBare } from "#test/bench/scale/bare_s3.ts";
import { report } from "./report.ts";

const PIECE_BYTES = 256 * 1024;
const OBJECT_BYTES = 64 * 1024 * 1024;

const { BENCH_FOLDER = "", BENCH_STORE = "{}" } = process.env;
const bareStore = JSON.parse(BENCH_STORE) as BareStore;
let objects = 0;

/** Pieces that become one object. */
class Parts {
  readonly #sum = createHash("sha256");
  pieces: Buffer[] = [];
  bytes = 0;

  add(pieces: readonly Buffer[]): void {
    for (const piece of pieces) {
      this.#sum.update(piece);
      this.bytes += piece.length;
    }
    this.pieces.push(...pieces);
  }

  send(): Promise<void> {
    objects += 1;
    return putBare(bareStore, `plain/${objects}`, this.pieces, this.#sum.digest("hex"));
  }
}

async function store(request: IncomingMessage): Promise<string> {
  const handle = await open(join(BENCH_FOLDER, "plain"), "w");
  let digest = "";
  let pending: Buffer[] = [];
  let bytes = 0;
  let writing: Promise<unknown> | undefined;
  let sending: Promise<void> | undefined;
  let parts = new Parts();
  const flush = async () => {
    const hash = createHash("sha256");
    for (const chunk of pending) hash.update(chunk);
    digest = hash.digest("hex");
    parts.add(pending);
    await writing;
    writing = handle.writev(pending);
    pending = [];
    bytes = 0;
    if (parts.bytes < OBJECT_BYTES) return;
    await sending;
    sending = parts.send();
    parts = new Parts();
  };
  for await (const chunk of request as AsyncIterable<Buffer>) {
    pending.push(chunk);
    bytes += chunk.length;
    if (bytes >= PIECE_BYTES) await flush();
  }
  await flush();
  await Promise.all([writing, sending, parts.send()]);
  await handle.close();
  return digest;
}

const server = createServer(async (request, response) => response.end(`{"Hash":"${await store(request)}"}\n`));
server.listen(0, "127.0.0.1", () => report((server.address() as AddressInfo).port));
