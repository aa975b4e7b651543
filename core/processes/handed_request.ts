/** One request that was handed to another process, on its way there and back. */
import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import { isHttp2 } from "../http/http2.ts";
import type { NodeRequest, NodeResponse } from "../http/node_messages.ts";
import { connectionFields, trailersOf, wholeBody } from "../http/relay.ts";

/** So long a request waits for another process to take the place of the one that is asked, milliseconds. */
const MAX_WAIT_MS = 15_000;

/** Nothing of a request has reached the other process. */
const unreached: ReadonlySet<unknown> = new Set(["ECONNREFUSED", "ENOENT"]);

export interface HandedRequestDeps {
  open(request: NodeRequest): ClientRequest;
  /** Another process takes the place of the one that is asked. */
  next(): Promise<void>;
}

export class HandedRequest {
  readonly #request: NodeRequest;
  readonly #response: NodeResponse;
  readonly #isLast: boolean;
  readonly #deps: HandedRequestDeps;
  readonly #began = performance.now();
  #outgoing: ClientRequest | undefined;
  /** Something of its body has left. */
  #isSent = false;

  constructor(request: NodeRequest, response: NodeResponse, isLast: boolean, deps: HandedRequestDeps) {
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

function hasBody(request: NodeRequest): boolean {
  if (isHttp2(request)) return !request.stream.endAfterHeaders;
  const { headers } = request;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** The body of a request of HTTP/2 whose length nobody has told. */
export function hasOpenBody(request: NodeRequest): boolean {
  return isHttp2(request) && hasBody(request) && request.headers["content-length"] === undefined;
}

/** The answer as it comes; with `isLast` it is the last one of its connection. */
export function answerWith(answer: IncomingMessage, response: NodeResponse, isLast: boolean): void {
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
    if (answer.rawTrailers.length > 0) (response as ServerResponse).addTrailers(trailersOf(answer));
  });
  pipeline(answer, response as ServerResponse, () => undefined);
}

/** The process that is asked is not there, or ended before it had answered. */
export function refuseLater(response: NodeResponse): void {
  const answer = response as ServerResponse;
  if (answer.headersSent || answer.destroyed) return;
  answer.writeHead(503, {
    "Content-Type": "text/plain; charset=utf-8",
    "Retry-After": "1",
    "Cache-Control": "no-store",
  });
  answer.end("503 Service Unavailable: the process that answers this is being started again\n");
}
