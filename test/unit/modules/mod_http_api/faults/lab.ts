/** Blocks that no honest program writes, put past all checks, and calls that are watched while they run. */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { CID } from "multiformats/cid";
import { create } from "multiformats/hashes/digest";
import { table } from "#modules/mod_http_api/commands/index.ts";
import { clientNode } from "#node/client_node.ts";
import { encodePb, type PbLink } from "#node/formats/dag_pb/dag_pb.ts";
import { encodeUnixfs, type Unixfs } from "#node/formats/unixfs/format.ts";
import type { Stores } from "#node/index.ts";
import type { LowLevelNode } from "#node/low_level_node.ts";
import { openNode } from "#node/open.ts";
import { eventually } from "#test/support/eventually.ts";
import { type ApiHost, multipart, startApi } from "#test/unit/modules/mod_http_api/support.ts";

const dagPbCode = 0x70;
const rawCode = 0x55;

/** The API on a node whose stores are the test's own. */
export interface Lab extends ApiHost {
  readonly node: LowLevelNode;
}

/** Whoever starts it stops it. */
export async function startLab(stores: (folder: string) => Promise<Stores>): Promise<Lab> {
  const repo = await mkdtemp(join(tmpdir(), "modhost-lab-"));
  const node = await openNode({ repo, profile: "local", stores: () => stores(repo) });
  const host = await startApi([], { table, node: clientNode(node) });
  const { stop } = host;
  let stopped: Promise<void> | undefined;
  const end = () =>
    (stopped ??= (async () => {
      await stop();
      await node.close().catch(() => undefined);
      await rm(repo, { recursive: true });
    })());
  return Object.assign(host, { node, stop: end, [Symbol.asyncDispose]: end });
}

export interface Answered<T> {
  readonly status: number;
  readonly bytes: Buffer;
  readonly text: string;
  /** Values of an answer in JSON. */
  readonly values: readonly T[];
  /** Of a failure, early or late. */
  readonly message: string | undefined;
}

/** A call on a connection of its own; a text is the file that is sent, with further headers of its part. */
export async function call<T = Record<string, unknown>>(
  { http }: { readonly http: number },
  path: string,
  file?: string | Uint8Array,
  partHeaders: Readonly<Record<string, string>> = {},
): Promise<Answered<T>> {
  const parts = file === undefined ? [] : [{ filename: "file", content: file as Buffer, headers: partHeaders }];
  const { headers, body } = parts.length === 0 ? {} : multipart(parts);
  const asked = request({
    host: "127.0.0.1",
    port: http,
    path: `/api/v0/${path}`,
    method: "POST",
    agent: false,
    headers,
  });
  asked.end(body);
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  const bytes = Buffer.concat(await Array.fromAsync(answer as AsyncIterable<Buffer>));
  const status = answer.statusCode as number;
  const isJson = answer.headers["content-type"] === "application/json";
  // Many are long, and nobody asks for their text.
  const text = () => String(bytes);
  const values = () =>
    isJson
      ? text()
          .split("\n")
          .flatMap((line) => (line === "" ? [] : [JSON.parse(line) as T]))
      : [];
  const early = () => (values()[0] as { Message?: string } | undefined)?.Message ?? text();
  return {
    status,
    bytes,
    get text() {
      return text();
    },
    get values() {
      return values();
    },
    message: answer.trailers["x-stream-error"] ?? (status === 200 ? undefined : early()),
  };
}

const cidOf = (bytes: Uint8Array, code: number): CID =>
  CID.createV1(code, create(0x12, new Uint8Array(hash("sha256", bytes, "buffer"))));

export interface Made {
  readonly cid: CID;
  readonly bytes: Uint8Array;
}

export function rawBlock(content: string | Uint8Array): Made {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  return { cid: cidOf(bytes, rawCode), bytes };
}

/** A node of a file tree, whatever it says. */
export function treeBlock(unixfs: Unixfs, links: readonly PbLink[]): Made {
  const bytes = encodePb({ data: encodeUnixfs(unixfs), links });
  return { cid: cidOf(bytes, dagPbCode), bytes };
}

export const link = (name: string, { cid }: Made, size = 1): PbLink => ({ name, cid, size });

/** A node above the one before it, level by level; all of them, the root last. */
export function tower(foot: Made, levels: number, above: (below: Made, level: number) => Made): Made[] {
  const made = [foot];
  for (let level = 1; level <= levels; level += 1) made.push(above(made.at(-1) as Made, level));
  return made;
}

/** 40 levels of nodes that link twice to the one below: 2 ** 40 ways to the foot. */
export const doubledFile = (foot: Made): Made[] =>
  tower(foot, 40, (below, level) => {
    const size = foot.bytes.length * 2 ** (level - 1);
    const links = [link("", below, size), link("", below, size)];
    return treeBlock({ type: "File", filesize: 2 * size, blocksizes: [size, size] }, links);
  });

export const doubledDirectory = (foot: Made): Made[] =>
  tower(foot, 40, (below) => treeBlock({ type: "Directory" }, [link("a", below), link("b", below)]));

/** Stored, and safe; the last one's CID. */
export async function keep(node: LowLevelNode, made: readonly Made[]): Promise<string> {
  await node.blocks.put(made);
  await node.sync();
  return String((made.at(-1) as Made).cid);
}

/** An answer that is read as far as one likes. */
export interface Watched {
  readonly answer: IncomingMessage;
  /** Reads on until so many bytes have come; what has come so far. */
  read(bytes: number): Promise<Buffer>;
  leave(): void;
}

export async function watch({ http }: { readonly http: number }, path: string): Promise<Watched> {
  const asked = request({ host: "127.0.0.1", port: http, path: `/api/v0/${path}`, method: "POST", agent: false });
  asked.on("error", () => undefined).end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  answer.on("error", () => undefined);
  const incoming = answer.iterator({ destroyOnReturn: false });
  const pieces: Buffer[] = [];
  let length = 0;
  return {
    answer,
    async read(bytes) {
      while (length < bytes) {
        const { done, value } = await incoming.next();
        if (done === true) break;
        pieces.push(value as Buffer);
        length += (value as Buffer).length;
      }
      return Buffer.concat(pieces);
    },
    leave: () => asked.destroy(),
  };
}

/** Whether no command runs. */
export async function isIdle(host: { readonly http: number }): Promise<boolean> {
  const { values } = await call<readonly { readonly Command: string; readonly Active: boolean }[]>(host, "diag/cmds");
  return values.flat().every(({ Command, Active }) => !Active || Command === "diag/cmds");
}

/** Resolves when no command runs any more. */
export const idle = (host: { readonly http: number }): Promise<void> =>
  eventually("no command runs", () => isIdle(host));

setFlagsFromString("--expose-gc");
const collectHeap = runInNewContext("gc") as () => void;

/** Bytes that are in use, on the heap and in buffers. */
export function bytesInUse(): number {
  collectHeap();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** No more than `most` bytes are in use beyond those of before; what was let go is not always gone at once. */
export async function expectHeld(before: number, most: number): Promise<void> {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  // With garbage: a collection takes longer than most tests.
  let held = heapUsed + arrayBuffers - before;
  if (held < most) return;
  for (let tries = 0; tries < 40; tries += 1) {
    held = bytesInUse() - before;
    if (held < most) return;
    await delay(25);
  }
  assert.fail(`${held} bytes are still held, ${most} are allowed`);
}
