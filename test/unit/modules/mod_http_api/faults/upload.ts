/**
 * Sends one large body to a node in a process of its own, and reports the memory that the process
 * needed:
 *
 * npm run test:upload -- [MEBIBYTES] [store]
 *
 * Without `store`, nothing is stored (`only-hash`). Exits with code 1 if the memory grew with the
 * body.
 */
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { apiOffline, RpcServer } from "#test/support/rpc_server.ts";
import { multipart } from "#test/unit/modules/mod_http_api/support.ts";

const mebibyte = 1024 * 1024;

export interface Upload {
  readonly mebibytes: number;
  /** Whether to store the content. */
  readonly store: boolean;
}

export interface Uploaded {
  readonly cid: string;
  /**
   * Largest resident set of the process in bytes: when it was ready, and at the end. Undefined if
   * the system does not report it.
   */
  readonly before: number | undefined;
  readonly peak: number | undefined;
  readonly seconds: number;
}

export async function upload({ mebibytes, store }: Upload): Promise<Uploaded> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-upload-"));
  try {
    await using server = await RpcServer.start({
      folder,
      env: apiOffline,
      nodeFlags: ["--max-old-space-size=128"],
    });
    await server.call("add", { "only-hash": "true" }, { first: Buffer.alloc(mebibyte) });
    const before = await peakOf(server.pid);
    const began = performance.now();
    const cid = await send(server.url, mebibytes, store);
    return { cid, before, peak: await peakOf(server.pid), seconds: (performance.now() - began) / 1000 };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function send(url: string, mebibytes: number, store: boolean): Promise<string> {
  const head = multipart([{ filename: "large" }], { cut: true });
  const { body: tail } = multipart([]);
  const sent = request(`${url}/api/v0/add?quieter=true&pin=${store}&only-hash=${!store}`, {
    method: "POST",
    headers: head.headers,
  });
  const responded = once(sent, "response") as Promise<[IncomingMessage]>;
  await pipeline(Readable.from(bodyOf(head.body, mebibytes, tail)), sent);
  const [response] = await responded;
  const text = String(Buffer.concat(await Array.fromAsync(response as AsyncIterable<Buffer>)));
  const failed = response.trailers["x-stream-error"];
  if (response.statusCode !== 200 || failed !== undefined) throw new Error(`add: ${failed ?? text}`);
  return (JSON.parse(text) as { Hash: string }).Hash;
}

/** No two pieces are equal, so each is stored. */
function* bodyOf(head: Buffer, mebibytes: number, tail: Buffer): Generator<Buffer> {
  yield head;
  for (let count = 0; count < mebibytes; count += 1) {
    const piece = Buffer.alloc(mebibyte, count % 251);
    for (let at = 0; at < mebibyte; at += 65_536) piece.writeUInt32LE(count, at);
    yield piece;
  }
  yield Buffer.from("\r\n");
  yield tail;
}

async function peakOf(pid: number): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(status) ?? [];
  return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
}

/** Bytes of memory that a large body may take in addition to a small one. */
export const allowance = 160 * mebibyte;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [size = "4096", mode] = process.argv.slice(2);
  const result = await upload({ mebibytes: Number(size), store: mode === "store" });
  const text = (bytes: number | undefined) => (bytes === undefined ? "?" : `${Math.round(bytes / mebibyte)} MiB`);
  console.log(
    `${size} MiB in ${result.seconds.toFixed(1)} s as ${result.cid}: ${text(result.before)} before, ${text(result.peak)} at most`,
  );
  if ((result.peak ?? 0) - (result.before ?? 0) > allowance) process.exitCode = 1;
}
