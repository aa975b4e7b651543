/**
 * Sends damaged requests to a running host in this process: it must not crash, hang, leak or stop
 * serving others.
 */
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import http2 from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseRouteKeys } from "#core/http/routing/keys.ts";
import { formdecode } from "#core/net/http.ts";
import type { HttpEvent, Module } from "#core/types.ts";
import { startHost, type TestHost } from "#test/support/host.ts";
import { clientContext, RawConnection } from "#test/support/raw.ts";
import { type Client, transports } from "#test/support/transports.ts";
import { LoopMeter } from "./delay/meter.ts";
import { makeForm, makeRequest, makeRouteKey, makeTarget } from "./grammar.ts";
import { Random } from "./random.ts";

export interface FuzzOptions {
  readonly seconds: number;
  readonly seed: number;
  /** Number of the first exchange. With `count` 1 a single exchange is repeated. */
  readonly from?: number;
  readonly count?: number;
}

/** The longest turn of the event loop: CPU time in milliseconds, and what happened during it. */
export interface WorstTurn {
  readonly ms: number;
  readonly during: string;
}

export interface FuzzSummary {
  readonly seed: number;
  readonly exchanges: number;
  /** Number of responses by status; "none" if the connection was closed without one. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly healthy: number;
  readonly worst: WorstTurn;
  /** Each failure names the exchange, so that it can be repeated. */
  readonly failures: readonly string[];
}

const lanes = 8;
/** Number of damaged requests for each healthy one. */
const healthyEvery = 50;
/** Milliseconds within which the server must close a connection that the client has ended. */
const patience = 8000;
const enoughFailures = 20;
/**
 * Milliseconds for which a client retries after the host's timeouts of 0.3 s, which happen on a
 * busy machine.
 */
const retryTime = 60_000;

export async function fuzz({
  seconds,
  seed,
  from = 0,
  count = Number.POSITIVE_INFINITY,
}: FuzzOptions): Promise<FuzzSummary> {
  const failures: string[] = [];
  const statuses: Record<string, number> = {};
  let healthy = 0;
  let next = from;
  const crash = (error: unknown) =>
    failures.push(`uncaught near exchange ${next}: ${error instanceof Error ? error.stack : error}`);
  process.on("uncaughtException", crash).on("unhandledRejection", crash);
  const host = await startHost(setup(seed));
  const restore = await emptyTemporaryFolder();
  const deadline = performance.now() + seconds * 1000;
  const meter = new LoopMeter();
  let worst: WorstTurn = { ms: 0, during: "in no exchange" };

  const lane = async () => {
    while (next < from + count && performance.now() < deadline && failures.length < enoughFailures) {
      const number = next++;
      const random = new Random(seed + number);
      try {
        const status = random.chance(0.15) ? await overHttp2(host, random) : await overSocket(host, random);
        statuses[status] = (statuses[status] ?? 0) + 1;
        const ms = meter.take();
        if (ms > worst.ms) worst = { ms, during: `near exchange ${number}` };
        // These statuses reject unknown versions, methods and transfer codings.
        const isRefusal = status === "501" || status === "505";
        if (status.startsWith("5") && !isRefusal) failures.push(`exchange ${number} got status ${status}`);
        if (number % healthyEvery === 0) {
          for (const name of transports) {
            const text = await requestHealthy(host.client(name));
            if (text !== "healthy") throw new Error(`a healthy request got ${text}`);
            healthy += 1;
          }
        }
      } catch (error) {
        failures.push(`exchange ${number}: ${error instanceof Error ? error.message : error}`);
      }
    }
  };

  try {
    await Promise.all(Array.from({ length: lanes }, lane));
    const left = await restore();
    if (left.length > 0) failures.push(`temporary files are left behind: ${left.join(", ")}`);
  } finally {
    meter.stop();
    await host.stop();
    await new Promise(setImmediate);
    process.removeListener("uncaughtException", crash).removeListener("unhandledRejection", crash);
  }
  const logged = host
    .log()
    .split("\n")
    .filter((line) => /\bfailed\b|uncaught/i.test(line));
  for (const line of logged.slice(0, enoughFailures)) failures.push(`logged: ${line}`);
  return { seed, exchanges: next - from, statuses, healthy, failures, worst };
}

const setup = (seed: number) => ({
  config: (folder: string) => ({
    modules_enabled: ["http", "http_errors", "http_files", "http_dir_listing", "http_health"],
    http_files_dir: join(folder, "www"),
    http_paths: { files: "/www" },
    http_max_content_size: 30_000,
    http_head_timeout: 0.3,
    http_progress_timeout: 0.3,
    http_idle_timeout: 0.3,
  }),
  async prepare(folder: string) {
    await mkdir(join(folder, "www", "a"), { recursive: true });
    await writeFile(join(folder, "www", "page.html"), "<p>page</p>");
  },
  modules: { mod_http_fuzz: routes, mod_http_odd: oddRoutes(seed) },
});

function routes(module: Module): void {
  module.depends("http");
  const parts = async ({ request }: HttpEvent) => {
    let bytes = 0;
    for await (const part of request.parts({ parts: 3, part_bytes: 10_000, header_bytes: 4096 })) {
      if (part.name === "f") bytes += (await part.bytes()).length;
    }
    return `${bytes}`;
  };
  module.provides("http", {
    cors: { enabled: true, credentials: true },
    route: {
      GET: () => "healthy",
      "GET /echo": ({ request }) =>
        `${request.path}${request.url.query}${request.body}${Object.keys(request.headers)}${request.ip}`,
      "POST /form": ({ request }) => JSON.stringify(formdecode(request.body)),
      "POST /parts": parts,
      "GET /*": (_event, path) => `below ${path}`,
    },
  });
  module.provides("http", {
    name: "up",
    streaming_uploads: true,
    route: {
      "POST /parts": parts,
      async "POST /raw"({ request }) {
        for await (const piece of request.body_stream) if (piece.includes(0)) return 400;
        return "taken";
      },
    },
  });
}

function oddRoutes(seed: number) {
  return (module: Module): void => {
    module.depends("http");
    const random = new Random(seed);
    const keys = Array.from({ length: 60 }, () => makeRouteKey(random)).filter(isRouteKey);
    module.provides("http", { route: Object.fromEntries(keys.map((key) => [key, () => "odd"])) });
  };
}

/** A module with an invalid route key would not be loaded at all. */
function isRouteKey(key: string): boolean {
  try {
    return parseRouteKeys([key], "odd").length === 1;
  } catch {
    return false;
  }
}

/**
 * Resolves to the status of the first response, or to "none". The server must close when the client
 * has ended its side.
 */
async function overSocket(host: TestHost, random: Random): Promise<string> {
  const tls = random.chance(0.2);
  using connection = await opened(host, tls);
  for (const piece of makeRequest(random)) {
    connection.write(piece);
    if (random.chance(0.2)) await new Promise(setImmediate);
  }
  if (random.chance(0.1)) return "left";
  connection.socket.end();
  const text = await connection.end();
  if (text === "") return "none";
  const status = /^HTTP\/1\.1 (\d{3})[^\r\n]*\r\n/.exec(text)?.[1];
  if (status === undefined) throw new Error(`no status line: ${JSON.stringify(text.slice(0, 200))}`);
  if (/\n\s+at .*\.ts:\d+/.test(text)) throw new Error("a stack trace was sent");
  return status === "100" ? (/\r\n\r\nHTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? "100") : status;
}

/**
 * On a busy machine a handshake may take longer than `http_head_timeout`. Then the host closes the
 * connection, and the client retries.
 */
async function opened(host: TestHost, tls: boolean): Promise<RawConnection> {
  const open = () => RawConnection.open(tls ? host.https : host.http, { tls, timeout: patience });
  return tls ? await untilNotReset(open) : await open();
}

/**
 * A kept-alive connection may be closed as idle while a request is being sent: then the client
 * sends it again (RFC 9112, 9.3.1).
 */
async function requestHealthy(client: Client): Promise<string> {
  return await untilNotReset(() => client.text("/fuzz"));
}

async function untilNotReset<T>(attempt: () => Promise<T>): Promise<T> {
  for (const deadline = performance.now() + retryTime; ; ) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > deadline || !isReset(error)) throw error;
    }
  }
}

/**
 * Returns whether an error says that the connection was reset or ended. HTTP/2 reports that as a
 * cancelled request, or as an error with the reset as its `cause`.
 */
function isReset(error: unknown): boolean {
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: unknown };
  const isCut = code === "ECONNRESET" || code === "EPIPE" || code === http2.constants.NGHTTP2_CANCEL;
  return isCut || (cause !== undefined && isReset(cause));
}

/** Sends well-formed frames with odd contents, and sometimes resets the stream half-way. */
async function overHttp2(host: TestHost, random: Random): Promise<string> {
  const session = http2.connect(`https://127.0.0.1:${host.https}`, {
    rejectUnauthorized: false,
    secureContext: clientContext,
  });
  session.on("error", () => undefined);
  try {
    const stream = session.request(
      {
        ":method": random.pick(["GET", "POST", "HEAD", "OPTIONS", "DELETE", "BREW"]),
        ":path": makeTarget(random).replace(/[^\x21-\x7e]/g, "-"),
        "content-type": random.pick(["application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "x"]),
        ...(random.chance(0.2) ? { "content-length": random.pick(["0", "5", "99999"]) } : {}),
        ...(random.chance(0.2) ? { range: random.pick(["bytes=0-", "bytes=5-1,0-0", "x"]) } : {}),
      },
      { endStream: false, signal: AbortSignal.timeout(patience) },
    );
    return await new Promise<string>((resolve, reject) => {
      let status = "none";
      stream.on("response", (headers) => {
        status = String(headers[":status"]);
      });
      stream.on("error", (error) => (error.name === "AbortError" ? reject(new Error("the stream hung")) : undefined));
      stream.on("close", () => resolve(status));
      stream.resume();
      if (random.chance(0.2)) stream.close(http2.constants.NGHTTP2_CANCEL);
      else stream.end(makeForm(random));
    });
  } finally {
    session.destroy();
  }
}

/**
 * Makes `os.tmpdir()` an empty folder. The returned function restores it, and returns the files
 * that were left in the folder.
 */
async function emptyTemporaryFolder(): Promise<() => Promise<string[]>> {
  const before = process.env.TMPDIR;
  const folder = await mkdtemp(join(tmpdir(), "modhost-fuzz-"));
  process.env.TMPDIR = folder;
  return async () => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    const left = await readdir(folder);
    await rm(folder, { recursive: true, force: true });
    return left;
  };
}
