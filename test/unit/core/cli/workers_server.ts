/**
 * A server of two processes (`modhost run --workers 2`), with modules that return the process in
 * which they run.
 */
import assert from "node:assert/strict";
import { type OutgoingHttpHeaders, request } from "node:http";
import { eventually } from "#test/support/eventually.ts";
import { Program } from "./spawned.ts";

const config = (more: object = {}) =>
  JSON.stringify({
    modules_enabled: [
      "http",
      "http_errors",
      "http_health",
      "http_admin",
      "http_openmetrics",
      "./mod_http_a.mjs",
      "./mod_http_kept.mjs",
      "./mod_http_cart.mjs",
      "./mod_http_shop.mjs",
    ],
    http_ports: [0],
    http_interfaces: ["127.0.0.1"],
    https_ports: [0],
    admin_port: 0,
    http_log: false,
    trusted_proxies: ["127.0.0.99"],
    ...more,
  });

/** Returns the process in which it runs. */
export const own = (text = "own") => `export const depends = ["http"];
export default (module) => {
  const headers = { content_type: "text/plain" };
  module.provides("http", { route: {
    "GET /pid": () => ({ headers, body: String(process.pid) }),
    "GET /set": () => ({ headers: { ...headers, set_cookie: "own=1" }, body: String(process.pid) }),
    "GET /send": () => ({ headers, body: typeof process.send }),
    "GET /cut": () => { setImmediate(() => process.disconnect()); return { headers, body: String(process.pid) }; },
    "GET /fetch/*": async (_event, address) => ({ headers, body: process.pid + " " + (await fetch("http://" + address)).status }),
    "GET /text": () => ({ headers, body: ${JSON.stringify(text)} }),
  } });
};`;

/** Remembers its clients separately in each process. */
const remembering = (by: string) => `export const sticky = ${JSON.stringify(by)};
${own()}`;

/** Keeps state: runs once. */
const stateful = `import { spawn } from "node:child_process";
export const shared = true;
export const depends = ["http"];
export default (module) => {
  const headers = { content_type: "text/plain" };
  let count = 0;
  module.provides("http", { streaming_uploads: true, route: {
    "GET /pid": () => ({ headers, body: String(process.pid) }),
    "GET /count": () => ({ headers, body: String((count += 1)) }),
    "GET /parent": () => ({ headers, body: String(process.ppid) }),
    "GET /wait": () => new Promise(() => undefined),
    "GET /drip": ({ response }) => {
      response.headers.content_type = "text/plain";
      return (async function* () { for (;;) { yield "drop "; await new Promise((resolve) => setTimeout(resolve, 20)); } })();
    },
    "GET /child": () => {
      const child = spawn(process.execPath, ["-e", "setTimeout(() => undefined, 60000)"], { stdio: "inherit" });
      return { headers, body: String(child.pid) };
    },
    "GET /client": ({ request }) => ({ headers, body: JSON.stringify([request.ip, request.raw.socket.remotePort]) }),
    "POST /upper": ({ request, response }) => {
      response.headers.content_type = "text/plain";
      response.trailer_names = ["X-After"];
      response.trailers = () => ({ "X-After": "the end" });
      return (async function* () {
        for await (const piece of request.body_stream) yield piece.toString().toUpperCase();
      })();
    },
    "WS /echo": (event) => {
      const socket = event.accept();
      (async () => { for await (const message of socket) socket.send(process.pid + " " + message); })().catch(() => undefined);
    },
  } });
};`;

const files = (more?: object) => ({
  "mod_http_a.mjs": own(),
  "mod_http_kept.mjs": stateful,
  "mod_http_cart.mjs": remembering("address"),
  "mod_http_shop.mjs": remembering("cookie"),
  "modhost.config.json": config(more),
});

/** Removes variables of other tests in this folder, which would override the config file. */
const env = { MODHOST_HTTP_PORTS: undefined, MODHOST_HTTPS_PORTS: undefined, MODHOST_ADMIN_PORT: undefined };

export interface Got {
  readonly status: number;
  readonly text: string;
  /** Port of the client. */
  readonly local: number;
  readonly cookies: readonly string[];
}

export type Serving = Awaited<ReturnType<typeof serving>>;

export async function serving(more?: object) {
  const program = await Program.in(files(more));
  const running = await program.serve(["run", "--workers", "2", "--json"], env);
  const portOf = (wanted: string) => running.started.ports.find(({ scheme }) => scheme === wanted)?.port as number;
  const port = portOf("http");
  const securePort = portOf("https");
  /** Sends a request on a new connection. */
  const get = (path: string, headers: OutgoingHttpHeaders = {}, localAddress = "127.0.0.1") =>
    new Promise<Got>((resolve, reject) => {
      const sent = request({ port, host: "127.0.0.1", path, headers, localAddress, agent: false }, async (response) => {
        const local = sent.socket?.localPort as number;
        let text = "";
        try {
          for await (const piece of response) text += piece;
          resolve({ status: response.statusCode ?? 0, text, local, cookies: response.headers["set-cookie"] ?? [] });
        } catch (error) {
          reject(error);
        }
      });
      sent.on("error", reject).end();
    });
  const pids = async () => {
    const responses = await Promise.all(Array.from({ length: 16 }, () => get("/a/pid")));
    return new Set(responses.map(({ text }) => Number(text)));
  };
  /**
   * Waits until both processes have responded. The system chooses which one accepts a connection.
   */
  const both = async () => {
    let seen = new Set<number>();
    await eventually("two processes answer", async () => {
      seen = await pids();
      return seen.size === 2;
    });
    return seen;
  };
  const first = async () => Number((await get("/kept/pid")).text);
  return {
    ...running,
    program,
    port,
    securePort,
    get,
    pids,
    both,
    first,
    async [Symbol.asyncDispose]() {
      running.kill("SIGTERM");
      await running.ended;
      await program[Symbol.asyncDispose]();
    },
  };
}

/** Runs `modhost` against the server's admin socket and returns its output. */
export async function commanded(server: Serving, ...words: string[]) {
  const { stdout, stderr } = await server.program.run([...words, "--json"], env);
  assert.notEqual(stdout, "", stderr);
  return JSON.parse(stdout);
}
