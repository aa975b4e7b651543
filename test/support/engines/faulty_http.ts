/**
 * A proxy between a client and an S3 server that fails like real stores and networks, as a test
 * chooses.
 */
import { once } from "node:events";
import { Agent, request as ask, createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { resetSocket } from "#test/support/reset_socket.ts";

/** A response of the proxy itself: the request does not reach the server. */
export interface RefusedWith {
  readonly status: number;
  readonly code: string;
  /** Seconds of the header Retry-After. */
  readonly retryAfter?: number;
}

/**
 * `reset`: the request does not reach the server. `lost`: the server has done it, and its response
 * is lost. `truncated`: half of the response body arrives. `swallowed`: the request does not reach
 * the server, and no response is sent.
 */
export type HttpFault = RefusedWith | "reset" | "lost" | "truncated" | "swallowed";

/** Chooses the fault of a request. Undefined is no fault. */
export type Choose = (method: string, url: string) => HttpFault | undefined;

export const SLOW_DOWN: RefusedWith = { status: 503, code: "SlowDown" };
export const INTERNAL_ERROR: RefusedWith = { status: 500, code: "InternalError" };

/** Pieces per second of a body that arrives at a limited `rate`. */
const TRICKLES = 20;

export class FaultyHttp implements AsyncDisposable {
  choose: Choose = () => undefined;
  /** Milliseconds before each request is forwarded. */
  latency = 0;
  /** Bytes per second of response bodies. Undefined is no limit. */
  rate: number | undefined;
  /** Number of swallowed requests whose clients still wait. */
  swallowed = 0;
  readonly #server: Server;
  readonly #target: URL;
  readonly #agent = new Agent({ keepAlive: true });

  private constructor(server: Server, target: URL) {
    this.#server = server;
    this.#target = target;
  }

  /** `endpoint`: URL of the server. */
  static async start(endpoint: string): Promise<FaultyHttp> {
    const server = createServer((request, response) => void proxy.#serve(request, response));
    const proxy = new FaultyHttp(server, new URL(endpoint));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return proxy;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Gives each of the next requests one of these faults. */
  next(...faults: readonly HttpFault[]): void {
    const left = [...faults];
    this.choose = () => left.shift();
  }

  /** Resets all connections. */
  cut(): void {
    this.#server.closeAllConnections();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.cut();
    this.#agent.destroy();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const fault = this.choose(request.method ?? "", request.url ?? "");
    const { socket } = request;
    if (fault === "reset") return void resetSocket(socket);
    if (fault === "swallowed") {
      this.swallowed += 1;
      socket.once("close", () => (this.swallowed -= 1));
      // An unread body would hide that the client has disconnected.
      return void request.resume();
    }
    try {
      const sent = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
      if (typeof fault === "object") return refuse(response, request.method === "HEAD", fault);
      if (this.latency > 0) await sleep(this.latency);
      const { upstream, body } = await this.#forward(request, sent);
      if (fault === "lost" || (fault === "truncated" && body.length === 0)) return void resetSocket(socket);
      response.writeHead(upstream.statusCode ?? 500, upstream.rawHeaders);
      if (fault === undefined && this.rate !== undefined) return await this.#trickle(response, body);
      if (fault === undefined) return void response.end(body);
      // Half of the body arrives before the reset.
      response.write(body.subarray(0, body.length >> 1), () => socket.destroySoon());
    } catch {
      socket.destroy();
    }
  }

  /** Sends the body at the rate of `rate`, as long as that is set and the client is connected. */
  async #trickle(response: ServerResponse, body: Buffer): Promise<void> {
    let at = 0;
    while (at < body.length && this.rate !== undefined && !response.destroyed) {
      const end = at + Math.max(1, Math.round(this.rate / TRICKLES));
      response.write(body.subarray(at, end));
      at = end;
      await sleep(1000 / TRICKLES);
    }
    response.end(body.subarray(at));
  }

  async #forward(request: IncomingMessage, body: Buffer): Promise<{ upstream: IncomingMessage; body: Buffer }> {
    const { hostname, port } = this.#target;
    const { method, url: path, rawHeaders: headers } = request;
    const forwarded = ask({ hostname, port, method, path, headers, agent: this.#agent, setHost: false });
    forwarded.end(body);
    const [upstream] = (await once(forwarded, "response")) as [IncomingMessage];
    return { upstream, body: Buffer.concat(await Array.fromAsync(upstream as AsyncIterable<Buffer>)) };
  }
}

function refuse(response: ServerResponse, isHead: boolean, { status, code, retryAfter }: RefusedWith): void {
  const wait = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
  response.writeHead(status, { "content-type": "application/xml", ...wait });
  response.end(isHead ? undefined : `<Error><Code>${code}</Code><Message>as a test says</Message></Error>`);
}

/** Gives each request one of these faults with the probability `share`, from 0 to 1. */
export function atRandom(random: () => number, share: number, faults: readonly HttpFault[]): Choose {
  return () => (random() < share ? faults[Math.floor(random() * faults.length)] : undefined);
}
