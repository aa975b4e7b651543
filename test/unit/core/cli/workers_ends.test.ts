/**
 * `modhost run --workers N`: effects on clients when one of the processes is killed, hangs, or
 * closes its channel.
 */
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { eventually } from "#test/support/eventually.ts";
import { type Serving, serving } from "./workers_server.ts";

/** Sends bytes and returns everything received until the connection ends. */
function exchange(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect({ port, host: "127.0.0.1" }, () => socket.write(bytes));
    socket.on("data", (piece) => {
      text += piece;
    });
    socket.on("error", () => undefined).on("close", () => resolve(text));
  });
}

const ask = (path: string, ...lines: string[]) => `GET ${path} HTTP/1.1\r\nHost: x\r\n${lines.join("\r\n")}\r\n\r\n`;
const last = "Connection: close";

/** Requests to the first process, each in another phase of its life. */
const phases: Readonly<Record<string, string>> = {
  "a head that is not whole": "GET /kept/pid HTTP/1.1\r\nHost: x\r\n",
  "a handler at work": ask("/kept/wait", last),
  "a handler at work, on a connection that has had an answer": ask("/a/pid") + ask("/kept/wait", last),
  "a body on its way": `POST /kept/upper HTTP/1.1\r\nHost: x\r\n${last}\r\nContent-Length: 100\r\n\r\nfirst`,
  "a body on its way, on a connection that has had an answer": `${ask("/a/pid")}POST /kept/upper HTTP/1.1\r\nHost: x\r\n${last}\r\nContent-Length: 100\r\n\r\nfirst`,
  "an answer on its way": ask("/kept/drip", last),
  "an answer on its way, on a connection that has had an answer": ask("/a/pid") + ask("/kept/drip", last),
  "a websocket": ask("/kept/echo", ...websocket()),
};

function websocket(): string[] {
  const key = Buffer.alloc(16, 7).toString("base64");
  return ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", `Sec-WebSocket-Key: ${key}`];
}

/** Clients that send requests repeatedly, each on a new connection. */
function load(port: number, count: number) {
  const statuses = new Map<string, number>();
  let isOver = false;
  const all = Array.from({ length: count }, async () => {
    while (!isOver) {
      const status = (await exchange(port, ask("/kept/pid", last))).slice(9, 12);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  });
  const end = async () => {
    isOver = true;
    await Promise.all(all);
  };
  return { statuses, end };
}

describe("a server of two processes, of which one has ended or hangs", { concurrency: 1, timeout: 600_000 }, () => {
  let server: Serving;
  let supervisor = "";
  before(async () => {
    server = await serving({ worker_timeout: 3 });
    supervisor = (await server.get("/kept/parent")).text;
  });
  after(() => server[Symbol.asyncDispose]());

  const descriptors = async () => (await readdir(`/proc/${supervisor}/fd`).catch(() => [])).length;

  for (const signal of ["SIGKILL", "SIGSTOP"] as const) {
    test(`every client of the first process gets a response or a closed connection after ${signal}, in any phase of its request`, async () => {
      await server.both();
      const first = await server.first();
      const before = await descriptors();
      const open = Object.entries(phases).map(([phase, bytes]) => ({ phase, ends: exchange(server.port, bytes) }));
      const clients = load(server.port, 24);
      await eventually("the request has arrived", () => (clients.statuses.get("200") ?? 0) > 200);
      process.kill(first, signal);
      const left = new Set(Object.keys(phases));
      await Promise.all(open.map(({ phase, ends }) => ends.then(() => left.delete(phase))));
      assert.deepEqual([...left], []);
      await eventually("another first process answers", async () => (await server.first()) !== first);
      await clients.end();
      assert.deepEqual(
        [...clients.statuses.keys()].filter((status) => !["", "200", "503"].includes(status)),
        [],
      );
      // Only requests that the process already had may be lost. All others went to its replacement.
      assert.ok((clients.statuses.get("") ?? 0) <= 24, JSON.stringify([...clients.statuses]));
      await eventually("the supervisor has none of the connections", async () => (await descriptors()) <= before);
    });
  }

  test("metrics do not wait for a process that hangs, and the process is replaced", async () => {
    const before = await server.both();
    const first = await server.first();
    const other = [...before].find((pid) => pid !== first) as number;
    process.kill(other, "SIGSTOP");
    const { status, text } = await server.get("/metrics");
    assert.deepEqual([status, /^modhost_workers \d/m.test(text)], [200, true]);
    // This checks that it still exists.
    process.kill(other, 0);
    await eventually("another process serves", async () => {
      const now = await server.pids();
      return now.size === 2 && !now.has(other);
    });
  });

  test("a process is replaced although its child keeps its output open", async () => {
    await server.both();
    const first = await server.first();
    const child = Number((await server.get("/kept/child")).text);
    process.kill(first, "SIGKILL");
    await eventually("another first process answers", async () => (await server.first()) !== first);
    process.kill(child, "SIGKILL");
  });

  test("a process whose code closes its channel is replaced; modules have no process.send", async () => {
    const before = await server.both();
    assert.equal((await server.get("/a/send")).text, "undefined");
    const cut = Number((await server.get("/a/cut")).text);
    assert.ok(before.has(cut));
    let now = new Set<number>();
    await eventually("another process serves", async () => {
      now = await server.pids().catch(() => now);
      return now.size === 2 && !now.has(cut);
    });
  });
});
