/**
 * Sockets that systemd or another program has opened for the server: they outlive the server, and
 * no connection is refused.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { on, once } from "node:events";
import { request } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { inheritedSockets } from "#core/cli/takeover/activation.ts";
import { eventually } from "#test/support/eventually.ts";
import { launcher } from "#test/support/launchers.ts";
import { Program } from "../spawned.ts";

const holder = fileURLToPath(new URL("../../../../support/socket_holder.mjs", import.meta.url));

const mod = `export default (module) => {
  module.depends("http");
  module.provides("http", { streaming_uploads: true, route: {
    "GET /": () => String(process.pid),
    "GET /slow": async function* () { for (let at = 0; at < 8; at += 1) { yield "piece\\n"; await new Promise((go) => setTimeout(go, 100)); } },
    "POST /": async ({ request }) => { let bytes = 0; for await (const piece of request.body_stream) bytes += piece.length; return String(bytes); },
  } });
};`;

/** Starts a server on a socket that another process keeps open. `name`: the name of the socket. */
async function serverOnSocket(name: string, config: (port: number) => object) {
  const socket = createServer().listen(0, "127.0.0.1");
  await once(socket, "listening");
  const { port } = socket.address() as AddressInfo;
  const program = await Program.in({
    "mod_http_a.mjs": mod,
    "modhost.config.json": JSON.stringify({
      modules_enabled: ["http", "./mod_http_a.mjs"],
      http_log: false,
      ...config(port),
    }),
  });
  const { fd } = (socket as unknown as { _handle: { fd: number } })._handle;
  const words = [launcher, "run", "--json"];
  const { NODE_OPTIONS: _, ...env } = process.env;
  const child = spawn(process.execPath, [holder, name, ...words], {
    cwd: program.folder,
    env,
    stdio: ["ignore", "pipe", "pipe", fd, "ipc"],
  });
  socket.close();
  const lines = createInterface(child.stdout as NodeJS.ReadableStream);
  const stderr = text(child.stderr as NodeJS.ReadableStream);
  const started = async () => {
    for await (const [line] of on(lines, "line") as AsyncIterable<[string]>)
      if (line.includes('"started"')) return JSON.parse(line);
  };
  return {
    port,
    first: await started(),
    stderr,
    /** Sends a request on a new connection. */
    async ask(path: string, body?: AsyncIterable<string>) {
      const method = body === undefined ? "GET" : "POST";
      const sent = request({ port, host: "127.0.0.1", path, method, agent: false });
      const incoming = once(sent, "response");
      for await (const piece of body ?? []) sent.write(piece);
      sent.end();
      const [response] = await incoming;
      return { status: response.statusCode as number, text: await text(response) };
    },
    async end(message: "restart" | "stop") {
      const ended = once(child, "message");
      child.send(message);
      return ((await ended) as [{ code: number }])[0].code;
    },
    async [Symbol.asyncDispose]() {
      if (child.connected) child.disconnect();
      if (child.exitCode === null) await once(child, "exit");
      await program[Symbol.asyncDispose]();
    },
  };
}

describe("a server whose sockets are inherited", { concurrency: 2, timeout: 120_000 }, () => {
  test("serves on a socket with the name of a service instead of its ports, and a restart loses no request", async () => {
    await using server = await serverOnSocket("http", () => ({ http_ports: [1], https_ports: [] }));
    assert.deepEqual(
      server.first.ports.map(({ service, port }: { service: string; port: number }) => [service, port]),
      [["http", server.port]],
    );
    const pids = new Set<string>();
    let requests = 0;
    let isOver = false;
    const load = Array.from({ length: 4 }, async () => {
      while (!isOver) {
        const { status, text } = await server.ask("/a/");
        assert.equal(status, 200);
        pids.add(text);
        requests += 1;
      }
    });
    const upload = async function* () {
      for (let at = 0; at < 8; at += 1) {
        yield "12345";
        await sleep(100);
      }
    };
    const transfers = [server.ask("/a/slow"), server.ask("/a/", upload())];
    await sleep(200);
    assert.equal(await server.end("restart"), 0);
    const [down, up] = await Promise.all(transfers);
    assert.equal(down?.text, "piece\n".repeat(8));
    assert.equal(up?.text, "40");
    await eventually("the other process has answered", () => pids.size === 2);
    isOver = true;
    await Promise.all(load);
    assert.ok(requests > 8);
    assert.equal(await server.end("stop"), 0);
  });

  test("serves on a socket that is bound to a port of an option", async () => {
    const config = (port: number) => ({ http_ports: [port], http_interfaces: ["127.0.0.1"], https_ports: [] });
    await using server = await serverOnSocket("modhost.socket", config);
    assert.match((await server.ask("/a/")).text, /^\d+$/);
    assert.equal(await server.end("stop"), 0);
  });

  test("closes a socket that no service uses, and logs it", async () => {
    const server = await serverOnSocket("odd", () => ({
      http_ports: [0],
      http_interfaces: ["127.0.0.1"],
      https_ports: [],
    }));
    assert.notEqual(server.first.ports[0].port, server.port);
    await server[Symbol.asyncDispose]();
    assert.match(await server.stderr, /The inherited socket odd \(port \d+ of 127\.0\.0\.1\) is closed/);
  });

  test("has the sockets that are meant for its process, and no others", () => {
    const ids = { pid: 10, ppid: 9 };
    const env = { LISTEN_PID: "10", LISTEN_FDS: "2", LISTEN_FDNAMES: "http:" };
    const both = [
      { fd: 3, name: "http" },
      { fd: 4, name: "unknown" },
    ];
    assert.deepEqual(inheritedSockets(env, ids), both);
    assert.deepEqual(inheritedSockets({ ...env, LISTEN_PID: "9" }, ids), both);
    assert.deepEqual(inheritedSockets({ ...env, LISTEN_PID: "8" }, ids), []);
    assert.deepEqual(inheritedSockets({ ...env, LISTEN_FDS: "-1" }, ids), []);
    assert.deepEqual(inheritedSockets({}, ids), []);
  });
});
