/**
 * Adds more and more entries to a node, and measures how many are listed and how much memory that
 * takes.
 */
import { readFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as pause } from "node:timers/promises";
import { apiOffline, RpcServer } from "#test/support/rpc_server.ts";

export interface GrowthStep {
  readonly name: string;
  readonly seconds: number;
  /** Maximum bytes of the process itself: heap, buffers and memory of libraries. */
  readonly own: number;
  /** Maximum bytes of mapped files in memory, which the system reclaims when it needs them. */
  readonly mapped: number;
}

export interface GrowthSettings {
  /** An empty folder for the data. */
  readonly folder: string;
  /** Number of files in the directory, and of pins. */
  readonly entries: number;
  /** Flags for the server's Node. */
  readonly nodeFlags?: readonly string[];
  /** Called after each step. */
  readonly report?: (step: GrowthStep) => void;
}

/** Milliseconds for which a lazy reader pauses. */
const idle = 500;
const boundary = "----------------------------growth4096";
const end = `--${boundary}--\r\n`;
const partsAtOnce = 256;

/**
 * Makes a body with the files of a directory, or with single files. All contents and names differ.
 */
function* body(entries: number, folder: string): Generator<Buffer> {
  const part = (name: string, type: string, content: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${encodeURIComponent(name)}"\r\nContent-Type: ${type}\r\n\r\n${content}\r\n`;
  const before = folder === "" ? "" : `${folder}/`;
  if (folder !== "") yield Buffer.from(part(folder, "application/x-directory", ""));
  for (let from = 0; from < entries; from += partsAtOnce) {
    let text = "";
    for (let at = from; at < Math.min(entries, from + partsAtOnce); at += 1) {
      text += part(`${before}file-${at}`, "application/octet-stream", `${folder} ${at}`);
    }
    yield Buffer.from(text);
  }
  yield Buffer.from(end);
}

/** Makes a call that must succeed, and resolves to the response, which is read later. */
async function call(url: string, path: string, upload?: Iterable<Buffer>): Promise<IncomingMessage> {
  const headers = upload === undefined ? {} : { "content-type": `multipart/form-data; boundary=${boundary}` };
  const sent = request(`${url}/api/v0/${path}`, { method: "POST", headers, agent: false });
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  sent.on("response", resolve).on("error", reject);
  pipeline(Readable.from(upload ?? []), sent).catch(reject);
  const response = await promise;
  if (response.statusCode !== 200) throw new Error(`${path}: status ${response.statusCode}: ${await textOf(response)}`);
  return response;
}

async function textOf(response: IncomingMessage): Promise<string> {
  return Buffer.concat(await Array.fromAsync(response as AsyncIterable<Buffer>)).toString();
}

interface Counted {
  readonly count: number;
  /** The last line. */
  readonly tail: string;
}

/** Counts how often `mark` occurs in a response. A `lazy` reader pauses at its beginning. */
async function count(response: IncomingMessage, mark: string, lazy = false): Promise<Counted> {
  let found = 0;
  let tail = "";
  let isFirst = lazy;
  for await (const piece of response as AsyncIterable<Buffer>) {
    if (isFirst) await pause(idle);
    isFirst = false;
    const text = tail + piece.toString("latin1");
    const before = tail.split(mark).length;
    found += text.split(mark).length - before;
    tail = text.slice(-400);
  }
  const late = response.trailers["x-stream-error"];
  if (late !== undefined) throw new Error(`the response failed late: ${late}`);
  return { count: found, tail };
}

/** Measures the memory of a process while a function runs. */
async function watched<T>(pid: number, work: () => Promise<T>): Promise<readonly [T, Omit<GrowthStep, "name">]> {
  let own = 0;
  let mapped = 0;
  const look = () => {
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    const bytes = (field: string) => 1024 * Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0);
    own = Math.max(own, bytes("RssAnon"));
    mapped = Math.max(mapped, bytes("RssFile"));
  };
  const timer = setInterval(look, 20);
  const began = performance.now();
  try {
    const result = await work();
    look();
    return [result, { seconds: (performance.now() - began) / 1000, own, mapped }];
  } finally {
    clearInterval(timer);
  }
}

/**
 * Adds a directory and as many pinned files, and lists all of them in every way. Needs Linux, whose
 * `/proc` reports memory.
 * @throws Error if a list has the wrong number of entries
 */
export async function grow(settings: GrowthSettings): Promise<readonly GrowthStep[]> {
  const { folder, entries, nodeFlags = [], report = () => {} } = settings;
  await using server = await RpcServer.start({ folder, nodeFlags, env: apiOffline });
  const { url, pid } = server;
  const steps: GrowthStep[] = [];

  async function step(name: string, expected: number, work: () => Promise<Counted>): Promise<string> {
    const [{ count: found, tail }, usage] = await watched(pid, work);
    if (found < expected || found > expected * 1.5 + 10_000) {
      throw new Error(`${name}: ${found} entries instead of ${expected}; the end is ${tail}`);
    }
    steps.push({ name, ...usage });
    report({ name, ...usage });
    return tail;
  }
  const list = (path: string, mark: string, expected = entries) =>
    step(path.replaceAll(/Qm\w+/g, "CID"), expected, async () => count(await call(url, path), mark));

  await textOf(await call(url, "config?arg=Experimental.ShardingEnabled&arg=true&bool=true"));
  const adding = (name: string) => async () =>
    count(await call(url, "add?progress=false&pin=true", body(entries, name)), "\n");
  const added = await step("add of a directory", entries + 1, adding("tree"));
  const root = /"Hash":"(\w+)"[^\n]*\n$/.exec(added)?.[1];
  await list(`ls?arg=${root}&stream=true`, "\n");
  await step("ls, stream, to a slow reader", entries, async () =>
    count(await call(url, `ls?arg=${root}&stream=true&resolve-type=false&size=false`), "\n", true),
  );
  await list(`ls?arg=${root}`, '"Target":');
  await textOf(await call(url, `files/cp?arg=/ipfs/${root}&arg=/big`));
  await list("files/ls?arg=/big", '"Name":');
  await list("files/ls?arg=/big&long=true", '"Name":');
  await list(`refs?arg=${root}&recursive=true`, "\n");
  await list(`refs?arg=${root}&recursive=true&unique=true`, "\n");
  await step("add of single files", entries, adding(""));
  await list("pin/ls?type=recursive&stream=true", "\n");
  await list("pin/ls?stream=true", "\n", entries * 2);
  await list("pin/ls", '"Type":', entries * 4);
  await list("refs/local", "\n", entries * 2);
  await list("repo/gc", "\n", 0);
  return steps;
}
