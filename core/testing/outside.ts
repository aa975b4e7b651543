/** Answers the requests of sandboxed modules to other hosts from queues of responses. */
import type { IncomingHttpHeaders, Server } from "node:http";
import { isIP, type Socket } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { OutsideNetwork } from "../isolation/network/broker.ts";
import type { PemPair } from "../tls/self_signed.ts";
import { hostPort, unbracketed } from "../util/brackets.ts";
import { createServer, type IncomingMessage, type ServerResponse } from "../util/node_http.ts";
import { socketPair } from "./memory_socket.ts";

/**
 * The result of one request to another host: a `Response`, a text with the status 200, or an Error,
 * which breaks the connection.
 */
export type OutsideResponse = Response | string | Error;

/** A request that another host has received from a module. */
export interface OutsideRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The body as text. */
  readonly body: string;
  bytes(): Buffer;
  json<T = unknown>(): T;
}

/** Another host, which the test plays. */
export interface OutsideHost {
  /** The requests so far. */
  readonly requests: readonly OutsideRequest[];
  /** The number of responses that are left in the queue. */
  readonly pending: number;
  /** Appends responses to the queue. */
  respond(...responses: readonly OutsideResponse[]): void;
}

/** The address that modules see for every other host: one of those for documentation. */
const ADDRESS = "192.0.2.1";
const PORTS = { "http:": 80, "https:": 443 } as const;

/** The other hosts of one test host, by `host:port`. */
export class OutsideHosts implements OutsideNetwork {
  readonly #pair: PemPair;
  readonly #hosts = new Map<string, QueuedHost>();

  /** `granted`: permissions to connect. Only these hosts can be reached. */
  static async create(granted: readonly string[]): Promise<OutsideHosts> {
    const { makeSelfSigned } = await import("../tls/self_signed.ts");
    const names = granted.map((item) => unbracketed(item.replace(/:[^:]*$/, "")));
    return new OutsideHosts(await makeSelfSigned([...new Set(["localhost", ...names])]));
  }

  private constructor(pair: PemPair) {
    this.#pair = pair;
  }

  get certificate(): string {
    return this.#pair.certificate;
  }

  /** @throws {TypeError} for a text that is not the origin of a URL */
  host(origin: string, responses: readonly OutsideResponse[]): OutsideHost {
    const { protocol, hostname, port, pathname, search } = URL.canParse(origin) ? new URL(origin) : new URL("none:");
    if (!(protocol === "http:" || protocol === "https:") || pathname !== "/" || search !== "") {
      throw new TypeError(`host.outside takes an origin, such as "https://api.example.org", not ${origin}`);
    }
    const at = hostPort(unbracketed(hostname), port === "" ? PORTS[protocol] : port);
    const key = `${protocol}//${at}`;
    let found = this.#hosts.get(at);
    if (found === undefined) {
      found = new QueuedHost(key, protocol === "https:" ? this.#pair : undefined);
      this.#hosts.set(at, found);
    } else if (found.origin !== key) {
      throw new TypeError(`host.outside(${JSON.stringify(origin)}): this test already plays ${found.origin}`);
    }
    found.respond(...responses);
    return found;
  }

  connect(host: string, port: number): Socket | undefined {
    const at = hostPort(unbracketed(host), port);
    const found = this.#hosts.get(at);
    if (found !== undefined) return found.open(port);
    // Servers of the test itself are reached by their addresses.
    if (isIP(unbracketed(host)) !== 0 && /^(?:127\.|\[?::1\]?$)/.test(host)) return undefined;
    const message = `connect ENETUNREACH ${at}: a test host connects to no other machine. Play it: host.outside("${port === 80 ? "http" : "https"}://${at.replace(/:(?:80|443)$/, "")}", [...])`;
    throw Object.assign(new Error(message), { code: "ENETUNREACH", syscall: "connect" });
  }

  close(): void {
    for (const host of this.#hosts.values()) host.close();
  }
}

class QueuedHost implements OutsideHost {
  readonly origin: string;
  readonly requests: OutsideRequest[] = [];
  readonly #queue: OutsideResponse[] = [];
  readonly #sockets = new Set<Socket>();
  /** It never listens: connections are passed to it. */
  readonly #server: Server;
  #lastPort = 49_151;

  constructor(origin: string, pair: PemPair | undefined) {
    this.origin = origin;
    const handle = (request: IncomingMessage, response: ServerResponse) => {
      // An error here is the module's disconnect.
      this.#respondTo(request, response).catch(() => request.socket.destroy());
    };
    this.#server =
      pair === undefined
        ? createServer(handle)
        : process.getBuiltinModule("node:https").createServer({ key: pair.key, cert: pair.certificate }, handle);
  }

  get pending(): number {
    return this.#queue.length;
  }

  respond(...responses: readonly OutsideResponse[]): void {
    this.#queue.push(...responses);
  }

  open(port: number): Socket {
    this.#lastPort += 1;
    const near = { address: ADDRESS, port: this.#lastPort };
    const far = { address: ADDRESS, port };
    const [client, server] = socketPair(
      { local: near, remote: far, encrypted: false },
      { local: far, remote: near, encrypted: false },
    );
    this.#sockets.add(server);
    server.on("error", () => undefined);
    server.once("close", () => this.#sockets.delete(server));
    this.#server.emit("connection", server);
    // TLS takes a socket without a handle of the system for one that is not connected yet.
    server.emit("connect");
    return client;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async #respondTo(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = Buffer.concat(await request.toArray());
    const body = bytes.toString("utf8");
    const { method = "GET", url: path = "/", headers } = request;
    this.requests.push({ method, path, headers, body, bytes: () => bytes, json: <T>() => JSON.parse(body) as T });
    const next = this.#queue.shift();
    if (next instanceof Error) {
      request.socket.destroy();
      return;
    }
    if (next === undefined || typeof next === "string") {
      const none = `The test has no response for ${method} ${this.origin}${path}: host.outside("${this.origin}", [...])`;
      response.writeHead(next === undefined ? 501 : 200, { "Content-Type": "text/plain; charset=utf-8" });
      response.end(next ?? none);
      return;
    }
    response.statusMessage = next.statusText;
    response.setHeaders(next.headers).writeHead(next.status);
    if (next.body === null) response.end();
    else await pipeline(Readable.fromWeb(next.body), response);
  }
}
