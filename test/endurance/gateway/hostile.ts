/**
 * A gateway that is asked for content made to do harm, and by clients that mean it: what it
 * answers, holds, and has left.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type Attack, attacks } from "./attacks.ts";
import { Http2Client, type Outcome, overHttp1, slowReader } from "./client.ts";
import type { ContentSize, Roots } from "./content.ts";
import type { Asked, Figures, Left, Ready } from "./server.ts";

export interface HostileSettings {
  readonly content: ContentSize;
  /** Bytes after which clients leave an answer that has no end. */
  readonly enough: number;
  /**
   * All attacks, each over HTTP/1.1 and over HTTP/2; else half of them, over one of these by turns.
   */
  readonly all: boolean;
  /** Clients at a time that read nothing, of each kind. */
  readonly readers: number;
  readonly kinds: number;
  /** Measure how long the event loop is held, which keeps a core busy. */
  readonly turns: boolean;
  readonly report?: (line: string) => void;
}

export interface HostileOutcome {
  readonly asked: number;
  /** Answers that are not honest, and what is left. */
  readonly failures: readonly string[];
  /**
   * Bytes of the process at most, beyond those that it had before: with all attacks, and with the
   * slow readers.
   */
  readonly memory: { readonly attacks: number; readonly readers: number };
  /** Milliseconds of CPU time for which the event loop was held, at most. */
  readonly turn: number;
}

/** Bytes of an answer that is to be read to its end. */
const MAX_WHOLE = 32 * 2 ** 20;
const program = fileURLToPath(new URL("server.ts", import.meta.url));
const mebibytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;

class Server {
  readonly #child: ChildProcess;

  constructor(content: ContentSize, turns: boolean) {
    const execArgv = ["--conditions=source", "--expose-gc"];
    this.#child = fork(program, [JSON.stringify(content), String(turns)], { execArgv });
  }

  /** @throws Error when the process ends instead */
  async told<T>(asked?: Asked): Promise<T> {
    const over = new AbortController();
    const signal = over.signal;
    const ended = once(this.#child, "exit", { signal }).then(([code]) =>
      Promise.reject(new Error(`it ended: ${code}`)),
    );
    ended.catch(() => undefined);
    try {
      const answered = once(this.#child, "message", { signal });
      answered.catch(() => undefined);
      if (asked !== undefined) this.#child.send(asked);
      const [message] = await Promise.race([answered, ended]);
      return message as T;
    } finally {
      over.abort();
    }
  }

  figures(collect = false): Promise<Figures> {
    return this.told({ ask: "figures", collect });
  }

  /** Resolves when the process has ended by itself: nothing holds it. */
  async stopped(): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.send({ ask: "stop" } satisfies Asked);
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
    const ready = await server.told<Ready>();
    const failures: string[] = [];
    const rest = await settledFigures(server);
    const { asked, most, turn } = await attackAll(server, ready, settings, failures);
    report(
      `${asked} requests, ${mebibytes(most - rest.memory)} more at most, event loop held for ${Math.round(turn)} ms at most`,
    );
    const before = await server.figures(true);
    const slow = await readSlowly(server, ready, settings, failures);
    report(`${readers} slow readers of each kind, ${mebibytes(slow - before.memory)} more at most`);
    failures.push(...(await leftovers(server, rest, ready.roots)));
    await server.stopped();
    return { asked, failures, turn, memory: { attacks: most - rest.memory, readers: slow - before.memory } };
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
  let asked = 0;
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
      asked += 1;
      const found = await ask().then(
        (outcome) => faultsOf(attack, outcome),
        (error: Error) => [error.message],
      );
      const { memory, turn, faults: logged } = await server.figures();
      if (turn > 50) report(`${Math.round(turn)} ms: ${attack.name}, ${name}`);
      found.push(...logged.slice(faults));
      faults = logged.length;
      most = Math.max(most, memory);
      longest = Math.max(longest, turn);
      for (const fault of found) failures.push(`${attack.name}, ${name}: ${fault}`);
    }
  }
  http2.close();
  return { asked, most, turn: longest };
}

/** What is wrong with an answer. */
function faultsOf(
  { status, end, most }: Attack,
  { status: got, end: ended, bytes, headers, start }: Outcome,
): string[] {
  const faults: string[] = [];
  if (!status.includes(got)) faults.push(`status ${got}: ${start.slice(0, 300)}`);
  if (end === "whole" && ended !== "whole") faults.push(`the answer is ${ended} after ${bytes} bytes`);
  if (most !== undefined && bytes > most) faults.push(`${bytes} bytes`);
  if ("set-cookie" in headers) faults.push("it sets a cookie");
  if (start.includes("\u202e") || /<script>alert/.test(start)) faults.push("what is in names steers the page");
  return faults;
}

/** The most memory with any kind of them, while others are answered. */
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
        failures.push(`others beside slow readers: status ${status}, ${bytes} bytes`);
    }
    const { memory } = await server.figures(true);
    report(`${mebibytes(memory)} with ${count} slow readers of ${kind.slice(-30)}`);
    most = Math.max(most, memory);
    for (const reader of readers) reader.leave();
  }
  return most;
}

/** Files and sockets are closed soon after the clients have gone. */
async function settledFigures(server: Server, files = Number.POSITIVE_INFINITY): Promise<Figures> {
  for (let left = 100; ; left -= 1) {
    const figures = await server.figures(true);
    if (figures.files <= files || left === 0) return figures;
  }
}

async function leftovers(server: Server, rest: Figures, roots: Roots): Promise<string[]> {
  const left: string[] = [];
  const { files } = await settledFigures(server, rest.files);
  if (files > rest.files) left.push(`${files} open files, of ${rest.files}`);
  const { pins } = await server.told<Left>({ ask: "left" });
  const attacked = new Set(Object.values(roots));
  for (const pin of pins) if (attacked.has(pin)) left.push(`${pin} is pinned`);
  return left;
}
