/**
 * Blocks that no honest program writes, stored without checks, and calls that are observed while
 * they run.
 */
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
import { encodePb, type PbLink } from "#node/formats/dag_pb/dag_pb.ts";
import { encodeUnixfs, type Unixfs } from "#node/formats/unixfs/format.ts";
import type { Stores } from "#node/index.ts";
import { clientNode } from "#node/library/client_node.ts";
import type { LowLevelNode } from "#node/node/low_level_node.ts";
import { openNode } from "#node/node/open.ts";
import { eventually } from "#test/support/eventually.ts";
import { type ApiHost, multipart, startApi } from "#test/unit/modules/mod_http_api/support.ts";

const dagPbCode = 0x70;
const rawCode = 0x55;

/** The API on a node with stores of the test. */
export interface Lab extends ApiHost {
  readonly node: LowLevelNode;
}

/** Starts a lab, which the caller must stop. */
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

export interface CallResult<T> {
  readonly status: number;
  readonly bytes: Buffer;
  readonly text: string;
  /** Values of a JSON response. */
  readonly values: readonly T[];
  /** The error message, before or after the first value. */
  readonly message: string | undefined;
}

/**
 * Makes a call on a connection of its own. `file` is the content to send, with additional headers
 * of its part.
 */
export async function call<T = Record<string, unknown>>(
  { http }: { readonly http: number },
  path: string,
  file?: string | Uint8Array,
  partHeaders: Readonly<Record<string, string>> = {},
): Promise<CallResult<T>> {
  const parts = file === undefined ? [] : [{ filename: "file", content: file as Buffer, headers: partHeaders }];
  const { headers, body } = parts.length === 0 ? {} : multipart(parts);
  const sent = request({
    host: "127.0.0.1",
    port: http,
    path: `/api/v0/${path}`,
    method: "POST",
    agent: false,
    headers,
  });
  sent.end(body);
  const [reply] = (await once(sent, "response")) as [IncomingMessage];
  const bytes = Buffer.concat(await Array.fromAsync(reply as AsyncIterable<Buffer>));
  const status = reply.statusCode as number;
  const isJson = reply.headers["content-type"] === "application/json";
  // Decoded only on request, because many responses are long.
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
    message: reply.trailers["x-stream-error"] ?? (status === 200 ? undefined : early()),
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

/** Returns a node of a file tree with any claims. */
export function treeBlock(unixfs: Unixfs, links: readonly PbLink[]): Made {
  const bytes = encodePb({ data: encodeUnixfs(unixfs), links });
  return { cid: cidOf(bytes, dagPbCode), bytes };
}

export const link = (name: string, { cid }: Made, size = 1): PbLink => ({ name, cid, size });

/** Returns nodes, each above the one before; the root is the last one. */
export function tower(foot: Made, levels: number, above: (below: Made, level: number) => Made): Made[] {
  const made = [foot];
  for (let level = 1; level <= levels; level += 1) made.push(above(made.at(-1) as Made, level));
  return made;
}

/** Returns 40 levels of nodes that link twice to the one below: 2 ** 40 paths to the foot. */
export const doubledFile = (foot: Made): Made[] =>
  tower(foot, 40, (below, level) => {
    const size = foot.bytes.length * 2 ** (level - 1);
    const links = [link("", below, size), link("", below, size)];
    return treeBlock({ type: "File", filesize: 2 * size, blocksizes: [size, size] }, links);
  });

export const doubledDirectory = (foot: Made): Made[] =>
  tower(foot, 40, (below) => treeBlock({ type: "Directory" }, [link("a", below), link("b", below)]));

/** Stores the blocks durably and returns the CID of the last one. */
export async function keep(node: LowLevelNode, made: readonly Made[]): Promise<string> {
  await node.blocks.put(made);
  await node.sync();
  return String((made.at(-1) as Made).cid);
}

/** A response of which the test reads as much as it wants. */
export interface Watched {
  readonly reply: IncomingMessage;
  /** Reads until that many bytes have arrived, and returns what has arrived so far. */
  read(bytes: number): Promise<Buffer>;
  leave(): void;
}

export async function watch({ http }: { readonly http: number }, path: string): Promise<Watched> {
  const sent = request({ host: "127.0.0.1", port: http, path: `/api/v0/${path}`, method: "POST", agent: false });
  sent.on("error", () => undefined).end();
  const [reply] = (await once(sent, "response")) as [IncomingMessage];
  reply.on("error", () => undefined);
  const incoming = reply.iterator({ destroyOnReturn: false });
  const pieces: Buffer[] = [];
  let length = 0;
  return {
    reply,
    async read(bytes) {
      while (length < bytes) {
        const { done, value } = await incoming.next();
        if (done === true) break;
        pieces.push(value as Buffer);
        length += (value as Buffer).length;
      }
      return Buffer.concat(pieces);
    },
    leave: () => sent.destroy(),
  };
}

/** Returns whether no command is running. */
export async function isIdle(host: { readonly http: number }): Promise<boolean> {
  const { values } = await call<readonly { readonly Command: string; readonly Active: boolean }[]>(host, "diag/cmds");
  return values.flat().every(({ Command, Active }) => !Active || Command === "diag/cmds");
}

/** Resolves when no command is running. */
export const idle = (host: { readonly http: number }): Promise<void> =>
  eventually("no command runs", () => isIdle(host));

setFlagsFromString("--expose-gc");
const collectHeap = runInNewContext("gc") as () => void;

/** Returns the bytes in use, on the heap and in buffers. */
export function bytesInUse(): number {
  collectHeap();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/**
 * Checks that at most `most` bytes more than before are in use. Freed memory may take a while to
 * disappear.
 */
export async function expectGrowthBelow(before: number, most: number): Promise<void> {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  // Includes garbage, because a collection takes longer than most tests.
  let growth = heapUsed + arrayBuffers - before;
  if (growth < most) return;
  for (let tries = 0; tries < 40; tries += 1) {
    growth = bytesInUse() - before;
    if (growth < most) return;
    await delay(25);
  }
  assert.fail(`${growth} bytes are still held, ${most} are allowed`);
}
