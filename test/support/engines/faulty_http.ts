/**
 * Stands between a client and an S3 server, and fails as stores and networks do, as a test says.
 */
import { once } from "node:events";
import { Agent, request as ask, createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** What the proxy answers itself: the server does not hear of the request. */
export interface RefusedWith {
  readonly status: number;
  readonly code: string;
  /** In seconds. */
  readonly retryAfter?: number;
}

/**
 * `reset`: the server does not hear of it. `lost`: it took place, and the answer is lost.
 * `truncated`: half of the answer's body comes. `swallowed`: the server does not hear of it, and
 * nothing is answered.
 */
export type HttpFault = RefusedWith | "reset" | "lost" | "truncated" | "swallowed";

/** What becomes of a request; undefined for no fault. */
export type Choose = (method: string, url: string) => HttpFault | undefined;

export const SLOW_DOWN: RefusedWith = { status: 503, code: "SlowDown" };
export const INTERNAL_ERROR: RefusedWith = { status: 500, code: "InternalError" };

/** Pieces in a second of a body that trickles. */
const TRICKLES = 20;

export class FaultyHttp implements AsyncDisposable {
  choose: Choose = () => undefined;
  /** Milliseconds before each request is handed on. */
  latency = 0;
  /** Bytes a second in which bodies of answers come; at once otherwise. */
  rate: number | undefined;
  /** Those that were swallowed, and whose clients still wait. */
  swallowed = 0;
  readonly #server: Server;
  readonly #target: URL;
  readonly #agent = new Agent({ keepAlive: true });

  private constructor(server: Server, target: URL) {
    this.#server = server;
    this.#target = target;
  }

  /** `endpoint`: of the server. */
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

  /** The next requests have these faults, one each. */
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
    if (fault === "reset") return void socket.resetAndDestroy();
    if (fault === "swallowed") {
      this.swallowed += 1;
      socket.once("close", () => (this.swallowed -= 1));
      // What is not read hides that the client has gone.
      return void request.resume();
    }
    try {
      const sent = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
      if (typeof fault === "object") return refuse(response, request.method === "HEAD", fault);
      if (this.latency > 0) await sleep(this.latency);
      const { answer, body } = await this.#forward(request, sent);
      if (fault === "lost" || (fault === "truncated" && body.length === 0)) return void socket.resetAndDestroy();
      response.writeHead(answer.statusCode ?? 500, answer.rawHeaders);
      if (fault === undefined && this.rate !== undefined) return await this.#trickle(response, body);
      if (fault === undefined) return void response.end(body);
      // The half arrives before the reset.
      response.write(body.subarray(0, body.length >> 1), () => socket.destroySoon());
    } catch {
      socket.destroy();
    }
  }

  /** As long as `rate` says so, or the client is there. */
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

  async #forward(request: IncomingMessage, body: Buffer): Promise<{ answer: IncomingMessage; body: Buffer }> {
    const { hostname, port } = this.#target;
    const { method, url: path, rawHeaders: headers } = request;
    const forwarded = ask({ hostname, port, method, path, headers, agent: this.#agent, setHost: false });
    forwarded.end(body);
    const [answer] = (await once(forwarded, "response")) as [IncomingMessage];
    return { answer, body: Buffer.concat(await Array.fromAsync(answer as AsyncIterable<Buffer>)) };
  }
}

function refuse(response: ServerResponse, isHead: boolean, { status, code, retryAfter }: RefusedWith): void {
  const wait = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
  response.writeHead(status, { "content-type": "application/xml", ...wait });
  response.end(isHead ? undefined : `<Error><Code>${code}</Code><Message>as a test says</Message></Error>`);
}

/** Each request has one of these faults with the given share, 0 to 1, and none otherwise. */
export function atRandom(random: () => number, share: number, faults: readonly HttpFault[]): Choose {
  return () => (random() < share ? faults[Math.floor(random() * faults.length)] : undefined);
}
