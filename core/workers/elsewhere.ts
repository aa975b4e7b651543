/** Requests that the first process answers: handed over as they come, over a socket of the system, and answered with what comes back. */
import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { Socket } from "node:net";
import { pipeline } from "node:stream";
import type { NodeRequest, NodeResponse } from "../http/node_messages.ts";
import { connectionFields, joinSockets, wholeBody } from "../http/relay.ts";
import type { RequestSiblings } from "../http/service.ts";
import type { Handover } from "../http/upgrade.ts";
import { Agent, request as openRequest } from "../util/node_http.ts";
import { peerOf } from "../worker/forward.ts";
import { inAscii, PEER_FIELD } from "../worker/messages.ts";
import type { Shared } from "./messages.ts";
import { requestPath, sharedPaths } from "./shared_paths.ts";
import { type PassConnection, steer } from "./steering.ts";

/** A connection that nobody uses is closed after so long: sooner than the first process closes it. Milliseconds. */
const IDLE_MS = 4000;

/** So long a request waits for another process to take the place of the first, milliseconds. */
const MAX_WAIT_MS = 15_000;

/** Nothing of a request has reached the other process. */
const unreached: ReadonlySet<unknown> = new Set(["ECONNREFUSED", "ENOENT"]);

const nowhere = (): boolean => false;

export class Elsewhere implements RequestSiblings {
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 256, timeout: IDLE_MS });
  #shared: Shared | undefined;
  #isShared: (path: string) => boolean = nowhere;
  /** Resolves with the next first process. */
  #next = Promise.withResolvers<void>();

  readonly #pass: PassConnection;

  constructor(shared: Shared | undefined, pass: PassConnection) {
    this.#pass = pass;
    if (shared !== undefined) this.use(shared);
  }

  /** From now on. */
  use(shared: Shared): void {
    this.#shared = shared;
    this.#isShared = sharedPaths(shared);
    this.#next.resolve();
    this.#next = Promise.withResolvers<void>();
  }

  close(): void {
    this.#agent.destroy();
  }

  begins(socket: Socket, serve: () => void, patience: number): void {
    steer(socket, serve, patience, { isShared: (path) => this.#isShared(path), pass: this.#pass });
  }

  takes({ url = "" }: NodeRequest): boolean {
    const path = requestPath(url);
    return path !== undefined && this.#isShared(path);
  }

  serve(request: NodeRequest, response: NodeResponse, isLast: boolean): void {
    new Passed(request, response, isLast, this.#deps).open();
  }

  serveUpgrade(request: IncomingMessage, handover: Handover): void {
    const outgoing = this.#open(request, true);
    const { response } = handover;
    outgoing.on("error", () => refuseLater(response));
    outgoing.once("response", (answer) => answerWith(answer, response, true));
    outgoing.once("upgrade", ({ rawHeaders }, inner, rest) => {
      const { socket, head } = handover.take();
      handover.detach();
      const lines = ["HTTP/1.1 101 Switching Protocols"];
      for (let at = 0; at < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
      socket.write(`${lines.join("\r\n")}\r\n\r\n`);
      if (rest.length > 0) socket.write(rest);
      if (head.length > 0) (inner as Socket).write(head);
      joinSockets(socket, inner as Socket);
    });
    response.once("close", () => outgoing.destroy());
    outgoing.end();
  }

  readonly #deps: PassedDeps = {
    open: (request) => this.#open(request, false),
    next: () => this.#next.promise,
  };

  #open(request: NodeRequest, isUpgrade: boolean): ClientRequest {
    const { socket = "", token = "" } = this.#shared ?? {};
    const headers: string[] = [PEER_FIELD, inAscii({ token, peer: peerOf(request.socket) } as never)];
    const { rawHeaders } = request;
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = rawHeaders[at] as string;
      const lower = name.toLowerCase();
      if (lower.startsWith(":") || lower === PEER_FIELD) continue;
      if (connectionFields.has(lower) && (lower !== "expect" || isUpgrade)) continue;
      headers.push(name, rawHeaders[at + 1] as string);
    }
    const { authority } = request as Http2ServerRequest;
    if (authority !== undefined && request.headers.host === undefined) headers.push("Host", authority);
    if (hasOpenBody(request)) headers.push("Transfer-Encoding", "chunked");
    if (isUpgrade) headers.push("Connection", "Upgrade", "Upgrade", request.headers.upgrade ?? "websocket");
    return openRequest({
      socketPath: socket,
      agent: isUpgrade ? false : this.#agent,
      method: request.method,
      path: request.url,
      headers: headers as never,
      setHost: false,
    });
  }
}

interface PassedDeps {
  open(request: NodeRequest): ClientRequest;
  /** Another process takes the place of the first. */
  next(): Promise<void>;
}

/** One request that is on its way. */
class Passed {
  readonly #request: NodeRequest;
  readonly #response: NodeResponse;
  readonly #isLast: boolean;
  readonly #deps: PassedDeps;
  readonly #began = performance.now();
  #outgoing: ClientRequest | undefined;
  /** Something of its body has left. */
  #isSent = false;

  constructor(request: NodeRequest, response: NodeResponse, isLast: boolean, deps: PassedDeps) {
    this.#request = request;
    this.#response = response;
    this.#isLast = isLast;
    this.#deps = deps;
    response.once("close", () => this.#outgoing?.destroy());
  }

  open(): void {
    const outgoing = this.#deps.open(this.#request);
    this.#outgoing = outgoing;
    outgoing.on("error", (error) => void this.#failed(outgoing, error));
    outgoing.once("response", (answer) => answerWith(answer, this.#response, this.#isLast));
    outgoing.on("continue", () => (this.#response as ServerResponse).writeContinue());
    if (!hasBody(this.#request)) {
      outgoing.end();
      return;
    }
    // Nothing of the body is taken before somebody is there.
    outgoing.once("socket", (socket) => {
      const send = () => this.#send(outgoing);
      if (socket.connecting) socket.once("connect", send);
      else send();
    });
    outgoing.flushHeaders();
  }

  #send(outgoing: ClientRequest): void {
    const request = this.#request;
    this.#isSent = true;
    request.once("end", () => {
      if (Object.keys(request.trailers).length > 0) outgoing.addTrailers(request.trailers as never);
    });
    // The answer tells what became of a body that could not be sent.
    pipeline(request, outgoing, () => undefined);
  }

  async #failed(outgoing: ClientRequest, error: NodeJS.ErrnoException): Promise<void> {
    const response = this.#response;
    if (outgoing !== this.#outgoing || response.destroyed || response.writableEnded) return;
    if (response.headersSent) {
      response.destroy();
      return;
    }
    // The other end closes a connection that is not used, and a request may cross with that.
    const isCrossed = outgoing.reusedSocket && error.code === "ECONNRESET" && !this.#isSent;
    const left = MAX_WAIT_MS - (performance.now() - this.#began);
    if (!isCrossed && (!unreached.has(error.code) || this.#isSent || left <= 0)) {
      refuseLater(response);
      return;
    }
    if (!isCrossed && !(await within(this.#deps.next(), left))) refuseLater(response);
    else if (!response.destroyed) this.open();
  }
}

async function within(awaited: Promise<void>, ms: number): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => late.resolve(false), ms);
  const isThere = await Promise.race([awaited.then(() => true), late.promise]);
  clearTimeout(timer);
  return isThere;
}

const isHttp2 = (request: NodeRequest): request is Http2ServerRequest => request.httpVersionMajor > 1;

function hasBody(request: NodeRequest): boolean {
  if (isHttp2(request)) return !request.stream.endAfterHeaders;
  const { headers } = request;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** The body of a request of HTTP/2 whose length nobody has told. */
function hasOpenBody(request: NodeRequest): boolean {
  return isHttp2(request) && hasBody(request) && request.headers["content-length"] === undefined;
}

function answerWith(answer: IncomingMessage, response: NodeResponse, isLast: boolean): void {
  const { statusCode = 502, statusMessage, rawHeaders } = answer;
  const isOld = (response as ServerResponse).req?.httpVersionMajor === 1;
  const fields = new Map<string, { name: string; values: string[] }>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const lower = name.toLowerCase();
    if (connectionFields.has(lower) || lower === "transfer-encoding") continue;
    const field = fields.get(lower) ?? { name, values: [] };
    field.values.push(rawHeaders[at + 1] as string);
    fields.set(lower, field);
  }
  for (const { name, values } of fields.values())
    (response as ServerResponse).setHeader(name, values.length === 1 ? (values[0] as string) : values);
  if (isOld && isLast) (response as ServerResponse).setHeader("Connection", "close");
  (response as ServerResponse).statusCode = statusCode;
  if (isOld && statusMessage !== undefined) (response as ServerResponse).statusMessage = statusMessage;
  const method = (response as ServerResponse).req?.method ?? "GET";
  const whole = wholeBody(answer, method);
  if (whole !== undefined) {
    (response as ServerResponse).end(whole);
    return;
  }
  (response as ServerResponse).flushHeaders();
  answer.once("end", () => {
    const { rawTrailers } = answer;
    const trailers: Record<string, string> = {};
    for (let at = 0; at < rawTrailers.length; at += 2)
      trailers[rawTrailers[at] as string] = rawTrailers[at + 1] as string;
    if (rawTrailers.length > 0) (response as ServerResponse).addTrailers(trailers);
  });
  pipeline(answer, response as ServerResponse, () => undefined);
}

/** The first process is not there, or ended before it had answered. */
function refuseLater(response: NodeResponse): void {
  const answer = response as ServerResponse;
  if (answer.headersSent || answer.destroyed) return;
  answer.writeHead(503, {
    "Content-Type": "text/plain; charset=utf-8",
    "Retry-After": "1",
    "Cache-Control": "no-store",
  });
  answer.end("503 Service Unavailable: the process that answers this is being started again\n");
}
