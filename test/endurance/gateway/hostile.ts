/**
 * Tests a gateway with harmful content and hostile clients: its responses, its memory, and what is
 * left afterwards.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type Attack, attacks } from "./attacks.ts";
import { Http2Client, overHttp1, type ReceivedResponse, slowReader } from "./client.ts";
import type { ContentSize, Roots } from "./content.ts";
import type { Instruction, LeftPins, Ready, ServerMetrics } from "./server.ts";

export interface HostileSettings {
  readonly content: ContentSize;
  /** Number of bytes after which clients disconnect from an endless response. */
  readonly enough: number;
  /**
   * Whether to run all attacks, each over HTTP/1.1 and over HTTP/2. Otherwise half of them run,
   * alternating between the two.
   */
  readonly all: boolean;
  /** Number of clients of each kind at the same time that read nothing. */
  readonly readers: number;
  readonly kinds: number;
  /** Whether to measure how long the event loop is blocked, which keeps a core busy. */
  readonly turns: boolean;
  readonly report?: (line: string) => void;
}

export interface HostileOutcome {
  readonly requests: number;
  /** Wrong responses, and resources that are left. */
  readonly failures: readonly string[];
  /** Maximum growth of the process in bytes: with all attacks, and with the slow readers. */
  readonly memory: { readonly attacks: number; readonly readers: number };
  /** Maximum CPU time in milliseconds for which the event loop was blocked. */
  readonly turn: number;
}

/** Maximum number of bytes of a response that is read to its end. */
const MAX_WHOLE = 32 * 2 ** 20;
const program = fileURLToPath(new URL("server.ts", import.meta.url));
const mebibytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;

class Server {
  readonly #child: ChildProcess;

  constructor(content: ContentSize, turns: boolean) {
    const execArgv = ["--conditions=source", "--expose-gc"];
    this.#child = fork(program, [JSON.stringify(content), String(turns)], { execArgv });
  }

  /** @throws Error if the process ends instead */
  async request<T>(instruction?: Instruction): Promise<T> {
    const over = new AbortController();
    const signal = over.signal;
    const ended = once(this.#child, "exit", { signal }).then(([code]) =>
      Promise.reject(new Error(`it ended: ${code}`)),
    );
    ended.catch(() => undefined);
    try {
      const received = once(this.#child, "message", { signal });
      received.catch(() => undefined);
      if (instruction !== undefined) this.#child.send(instruction);
      const [message] = await Promise.race([received, ended]);
      return message as T;
    } finally {
      over.abort();
    }
  }

  metrics(collect = false): Promise<ServerMetrics> {
    return this.request({ ask: "metrics", collect });
  }

  /** Resolves when the process has ended by itself, because nothing keeps it alive. */
  async stopped(): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.send({ ask: "stop" } satisfies Instruction);
    await ended;
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}

export async function hostile(settings: HostileSettings): Promise<HostileOutcome> {
  const { content, turns, readers, report = () => undefined } = settings;
  const server = new Server(content, turns);
  try {
    const ready = await server.request<Ready>();
    const failures: string[] = [];
    const rest = await settledMetrics(server);
    const { requests, most, turn } = await attackAll(server, ready, settings, failures);
    report(
      `${requests} requests, at most ${mebibytes(most - rest.memory)} more memory, event loop blocked for at most ${Math.round(turn)} ms`,
    );
    const before = await server.metrics(true);
    const slow = await readSlowly(server, ready, settings, failures);
    report(`${readers} slow readers of each kind, at most ${mebibytes(slow - before.memory)} more memory`);
    failures.push(...(await leftovers(server, rest, ready.roots)));
    await server.stopped();
    return { requests, failures, turn, memory: { attacks: most - rest.memory, readers: slow - before.memory } };
  } finally {
    server.kill();
  }
}

async function attackAll(
  server: Server,
  { http, https, roots }: Ready,
  { enough, all, report = () => undefined }: HostileSettings,
  failures: string[],
) {
  let requests = 0;
  let most = 0;
  let longest = 0;
  let faults = 0;
  const http2 = new Http2Client(https);
  const chosen = attacks(roots).filter((_, at) => all || at % 2 === 0);
  for (const [at, attack] of chosen.entries()) {
    const what = { ...attack, enough: attack.end === "whole" ? MAX_WHOLE : enough };
    const ways = [
      { name: "HTTP/1.1", ask: () => overHttp1(http, what) },
      { name: "HTTP/2", ask: () => http2.ask(what) },
    ];
    for (const { name, ask } of all ? ways : ways.filter((_, way) => way === at % 2)) {
      requests += 1;
      const found = await ask().then(
        (outcome) => faultsOf(attack, outcome),
        (error: Error) => [error.message],
      );
      const { memory, turn, faults: logged } = await server.metrics();
      if (turn > 50) report(`${Math.round(turn)} ms: ${attack.name}, ${name}`);
      found.push(...logged.slice(faults));
      faults = logged.length;
      most = Math.max(most, memory);
      longest = Math.max(longest, turn);
      for (const fault of found) failures.push(`${attack.name}, ${name}: ${fault}`);
    }
  }
  http2.close();
  return { requests, most, turn: longest };
}

/** Returns what is wrong with a response. */
function faultsOf(
  { status, end, most }: Attack,
  { status: got, end: ended, bytes, headers, start }: ReceivedResponse,
): string[] {
  const faults: string[] = [];
  if (!status.includes(got)) faults.push(`status ${got}: ${start.slice(0, 300)}`);
  if (end === "whole" && ended !== "whole") faults.push(`the response is ${ended} after ${bytes} bytes`);
  if (most !== undefined && bytes > most) faults.push(`${bytes} bytes`);
  if ("set-cookie" in headers) faults.push("it sets a cookie");
  if (start.includes("\u202e") || /<script>alert/.test(start)) faults.push("names change the page");
  return faults;
}

/**
 * Resolves to the highest memory with slow readers of each kind, while other clients get responses.
 */
async function readSlowly(
  server: Server,
  { http, roots }: Ready,
  { readers: count, kinds, report = () => undefined }: HostileSettings,
  failures: string[],
): Promise<number> {
  const paths = [
    `/ipfs/${roots.film}?filename=a.bin`,
    `/ipfs/${roots.heavy}/a/a/a/a/a/a/a/a?format=car`,
    `/ipfs/${roots.film}?format=tar`,
    `/ipfs/${roots.heavy}?format=car`,
    `/ipfs/${roots.film}?format=car&car-dups=y`,
  ];
  let most = 0;
  for (const kind of paths.slice(0, kinds)) {
    const readers = Array.from({ length: count }, () => slowReader(http, kind));
    const statuses = await Promise.all(readers.map(({ begun }) => begun));
    for (const status of new Set(statuses))
      if (status !== 200) failures.push(`slow readers of ${kind}: status ${status}`);
    for (let others = 0; others < 10; others += 1) {
      const { status, bytes } = await overHttp1(http, { path: `/ipfs/${roots.hamt}/file-${others}`, enough: 1000 });
      if (status !== 200 || bytes !== 100)
        failures.push(`other clients during slow readers: status ${status}, ${bytes} bytes`);
    }
    const { memory } = await server.metrics(true);
    report(`${mebibytes(memory)} with ${count} slow readers of ${kind.slice(-30)}`);
    most = Math.max(most, memory);
    for (const reader of readers) reader.leave();
  }
  return most;
}

/** Files and sockets are closed soon after the clients have disconnected. */
async function settledMetrics(server: Server, files = Number.POSITIVE_INFINITY): Promise<ServerMetrics> {
  for (let left = 100; ; left -= 1) {
    const metrics = await server.metrics(true);
    if (metrics.files <= files || left === 0) return metrics;
  }
}

async function leftovers(server: Server, rest: ServerMetrics, roots: Roots): Promise<string[]> {
  const left: string[] = [];
  const { files } = await settledMetrics(server, rest.files);
  if (files > rest.files) left.push(`${files} open files, of ${rest.files}`);
  const { pins } = await server.request<LeftPins>({ ask: "left" });
  const attacked = new Set(Object.values(roots));
  for (const pin of pins) if (attacked.has(pin)) left.push(`${pin} is pinned`);
  return left;
}
