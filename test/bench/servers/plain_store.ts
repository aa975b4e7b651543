/**
 * The minimum cost of storing and serving. A large body is read, hashed in pieces of 256 KiB and
 * appended to a file, which is flushed once; reading pipes the file back. Small bodies go to one
 * file for all: those that wait at the same time are appended in one write and flushed together.
 * Responses are those of the API, as far as the benchmark uses it.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { report } from "./report.ts";

const pieceBytes = 256 * 1024;
/** A larger body is a large file. */
const smallBytes = 1024 * 1024;
const folder = process.env.BENCH_FOLDER ?? "";
const file = join(folder, "plain");
const version = '{"Version":"0.9.0","Commit":"","Repo":"11","System":"amd64/linux","Golang":"node"}\n';

async function store(request: IncomingMessage): Promise<string> {
  const handle = await open(file, "w");
  let digest = "";
  let pending: Buffer[] = [];
  let bytes = 0;
  let writing: Promise<unknown> | undefined;
  const flush = async () => {
    const sha256 = createHash("sha256");
    for (const chunk of pending) sha256.update(chunk);
    digest = sha256.digest("hex");
    await writing;
    writing = handle.writev(pending);
    pending = [];
    bytes = 0;
  };
  for await (const chunk of request as AsyncIterable<Buffer>) {
    pending.push(chunk);
    bytes += chunk.length;
    if (bytes >= pieceBytes) await flush();
  }
  await flush();
  await writing;
  await handle.datasync();
  await handle.close();
  return digest;
}

interface Body {
  readonly parts: readonly Buffer[];
  readonly bytes: number;
  /** Called with the offset once the bytes are on the disk. */
  readonly done: (at: number) => void;
}

/** A file of small bodies, one after the other. */
class Log {
  readonly #handle: FileHandle;
  #end = 0;
  #waiting: Body[] = [];
  #isWriting = false;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  add(body: Body): void {
    this.#waiting.push(body);
    if (!this.#isWriting) this.#write().catch((error: Error) => console.error(error));
  }

  read(bytes: number, at: number) {
    return this.#handle.read(Buffer.allocUnsafe(bytes), 0, bytes, at);
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      const parts = group.flatMap((body) => body.parts);
      await this.#handle.writev(parts, this.#end);
      await this.#handle.datasync();
      for (const { bytes, done } of group) {
        done(this.#end);
        this.#end += bytes;
      }
    }
    this.#isWriting = false;
  }
}

const log = new Log(await open(join(folder, "small"), "w+"));
/** Offsets of small bodies by their hash. */
const offsets = new Map<string, { readonly at: number; readonly bytes: number }>();

function keep(request: IncomingMessage, response: ServerResponse): void {
  const parts: Buffer[] = [];
  const sha256 = createHash("sha256");
  let bytes = 0;
  request.on("data", (chunk: Buffer) => {
    parts.push(chunk);
    sha256.update(chunk);
    bytes += chunk.length;
  });
  request.on("end", () => {
    const digest = sha256.digest("hex");
    const done = (at: number) => {
      offsets.set(digest, { at, bytes });
      response.end(`{"Hash":"${digest}"}\n`);
    };
    log.add({ parts, bytes, done });
  });
}

async function give(digest: string, response: ServerResponse): Promise<void> {
  const { at, bytes } = offsets.get(digest) ?? { at: 0, bytes: 0 };
  response.end((await log.read(bytes, at)).buffer);
}

const server = createServer(async (request, response) => {
  const { pathname, searchParams: query } = new URL(request.url ?? "", "http://localhost");
  switch (pathname) {
    case "/api/v0/version":
      response.setHeader("Content-Type", "application/json").end(version);
      break;
    case "/api/v0/block/get":
      await give(query.get("arg") ?? "", response);
      break;
    case "/api/v0/cat":
    case "/api/v0/dag/export": {
      const start = Number(query.get("offset") ?? 0);
      const length = Number(query.get("length") ?? Number.POSITIVE_INFINITY);
      createReadStream(file, { start, end: start + length - 1 }).pipe(response);
      break;
    }
    default:
      if (Number(request.headers["content-length"] ?? 0) <= smallBytes) keep(request, response);
      else response.end(`{"Hash":"${await store(request)}"}\n`);
  }
});
server.listen(0, "127.0.0.1", () => report((server.address() as AddressInfo).port));
