/**
 * Forwards the requests for a module's apps to its worker or sandbox, and relays the responses.
 */
import type { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Exchange } from "../http/lifecycle/exchange.ts";
import type { WebSocketExchange } from "../http/websocket/exchange.ts";
import type { Channel } from "../relay/channel.ts";
import { deserializeError } from "../relay/errors.ts";
import { RelayFault } from "../relay/fault.ts";
import { headerTable, innerResponseFields } from "../relay/fields.ts";
import {
  asciiJson,
  INNER_FIELDS,
  type InnerAddress,
  type InnerTarget,
  innerFields,
  openInnerRequest,
  PASSED_FIELD,
  peerTextOf,
  REFUSED_FIELD,
} from "../relay/inner_request.ts";
import { relayEarlyHints } from "../relay/interim.ts";
import { LinkedBody } from "../relay/linked_body.ts";
import { trailersOf } from "../relay/message.ts";
import { OutgoingRequest, type Received } from "../relay/outgoing_request.ts";
import { type LinkedCall, type LinkedResponse, RequestLink } from "../relay/request_link.ts";
import { relayLinked, relayResponse, relayWhole } from "../relay/response.ts";
import { joinTunnels } from "../relay/tunnel.ts";
import { presentsToken } from "../tokens/index.ts";
import type { ResponseFields } from "../types.ts";
import { headerOf } from "../util/header_fields.ts";
import { isHttp2 } from "../util/http2.ts";
import { tracedFields } from "../util/log.ts";
import type { IncomingMessage } from "../util/node_http.ts";
import type { NodeRequest } from "../util/node_messages.ts";
import type { RequestAccount, RequestUse } from "./limits/request_account.ts";
import type { Bearer, Refusal } from "./messages.ts";

/** Response fields of the worker that the host writes itself. */
const ofHost: ReadonlySet<string> = new Set([...INNER_FIELDS, "trailer", "date"]);
/** Fields that the host sets itself if it also makes the page of the response. */
const ofPage: ReadonlySet<string> = new Set([...ofHost, "content-length", "content-type"]);

/** Maximum length of a body that is read before the request is sent, if it has arrived already. */
const MAX_WHOLE_BYTES = 64 * 1024;
/** Request fields that a sandboxed module does not get if they have a token of the server. */
const ofTokens: ReadonlySet<string> = new Set(["authorization"]);

export interface ForwarderOptions {
  /**
   * Whether tokens of the server are removed from requests. A client may send one with a request
   * that needs none, and the module could use it.
   */
  readonly withholdsTokens: boolean;
  readonly requests: RequestAccount;
  /** Called with the reason when the worker sends what no correct worker sends. */
  malformed(reason: string): void;
}

export class Forwarder {
  readonly #target: InnerTarget;
  readonly #channel: Channel;
  readonly #leaving: (closeCode: number) => void;
  readonly #link: RequestLink;
  readonly #options: ForwarderOptions;

  /**
   * `leaving` is called when the module is about to be unloaded, with the code for closing its
   * websockets.
   */
  constructor(
    address: InnerAddress,
    channel: Channel,
    leaving: (closeCode: number) => void,
    options: ForwarderOptions,
  ) {
    this.#options = options;
    this.#target = { ...address, agent: false };
    this.#link = new RequestLink(address, (reason) => options.malformed(reason));
    this.#channel = channel;
    this.#leaving = leaving;
  }

  /** Closes the connection to the worker. */
  close(): void {
    this.#link.close();
  }

  /** The handler of a route. Returns nothing when no handler of the module responds. */
  readonly handle = async (exchange: Exchange): Promise<unknown> => {
    if (this.#hasForwarded(exchange)) return undefined;
    const use = this.#begin(exchange);
    if (use === undefined) return true;
    const body = exchange.hasBody ? await bodyOf(exchange) : exchange.request.buffered;
    if (exchange.gone) return true;
    const { request, response } = exchange;
    const { raw } = request;
    const { url, host } = targetOf(exchange);
    const call = this.#link.send({
      head: [
        request.method,
        url,
        peerTextOf(raw.socket),
        request.id,
        factsOf(exchange),
        ...innerFields(raw, { host, passesExpect: false, withheld: this.#withheld(exchange) }),
      ],
      body,
      trailers: () => trailersOf(raw).flat(),
      informed: (status, rawHeaders) => relayEarlyHints(raw, response.raw, status, rawHeaders),
    });
    this.#whenLeaving(exchange);
    response.raw.once("close", () => call.close());
    followHalfClose(raw, call);
    try {
      const received = await call.response;
      use.responded();
      return respond(exchange, received);
    } catch (error) {
      await this.#unanswered(exchange, error);
      return true;
    }
  };

  /** The handler of a websocket's route, which has a connection of its own. */
  readonly upgrade = async (exchange: WebSocketExchange): Promise<unknown> => {
    if (this.#hasForwarded(exchange)) return undefined;
    const use = this.#begin(exchange);
    if (use === undefined) return true;
    const { request, response } = exchange;
    const { raw } = request;
    const opened = openInnerRequest(raw, this.#target, {
      ...targetOf(exchange),
      upgrade: "websocket",
      passesExpect: true,
      withheld: this.#withheld(exchange),
      facts: { id: request.id, bearer: bearerOf(exchange), traced: tracedFields(request) },
    });
    const outgoing = new OutgoingRequest(opened, {
      body: undefined,
      isUpgrade: true,
      informed: (status, rawHeaders) => relayEarlyHints(raw, response.raw, status, rawHeaders),
    });
    this.#whenLeaving(exchange);
    request.closed.addEventListener("abort", () => outgoing.abort(), { once: true });
    let received: Received;
    try {
      received = await outgoing.response;
    } catch (error) {
      use.end();
      await this.#unanswered(exchange, error);
      return true;
    }
    const { incoming, tunnel } = received;
    if (tunnel === undefined) {
      use.responded();
      return respond(exchange, { ...headOf(incoming), body: incoming });
    }
    // A websocket is no request any longer.
    use.end();
    if (exchange.gone) tunnel.socket.destroy();
    else joinTunnels(exchange.tunnel(), tunnel, incoming.rawHeaders);
    return true;
  };

  /** Counts a request. Refuses it, and returns undefined, if the module has as many as it may. */
  #begin(exchange: Exchange): RequestUse | undefined {
    const use = this.#options.requests.begin(exchange.request.id);
    if (use === undefined) refuseForNow(exchange);
    else exchange.response.raw.once("close", () => use.end());
    return use;
  }

  /**
   * Whether the request was sent to the worker before: another route of the module must not send it
   * again.
   */
  #hasForwarded(exchange: Exchange): boolean {
    if (exchange.forwarders?.includes(this) === true) return true;
    (exchange.forwarders ??= []).push(this);
    return false;
  }

  #whenLeaving(exchange: Exchange): void {
    exchange.request.whenLeaving(() => this.#leaving(exchange.mount?.closeCode ?? 1001));
  }

  /** Returns the names of the request fields that the module does not get. */
  #withheld({ request }: Exchange): ReadonlySet<string> | undefined {
    if (!this.#options.withholdsTokens) return undefined;
    return request.token !== undefined || presentsToken(request.header("authorization")) ? ofTokens : undefined;
  }

  /**
   * Handles a connection that ended without a response: its worker has ended, or a handler has
   * closed the connection.
   */
  async #unanswered(exchange: Exchange, error: unknown): Promise<void> {
    // The worker responds to a ping, or the channel ends with it.
    const lives = await this.#channel.call("ping").then(
      () => true,
      () => false,
    );
    if (exchange.gone) return;
    if (error instanceof RelayFault && error.reason === "bad_answer") exchange.refuse(error.status);
    else if (lives) exchange.cut();
    else refuseForNow(exchange);
  }
}

function refuseForNow(exchange: Exchange): void {
  exchange.response.headers.retry_after = "1";
  exchange.refuse(503);
}

/** Returns the target of the request line, and the Host header of a request that has none. */
function targetOf({ request }: Exchange): { readonly url: string; readonly host: string } {
  // Within middleware `raw.url` begins at the base of the app.
  return { url: request.context.originalUrl, host: request.header("host") ?? "localhost" };
}

/** Returns further facts about the request as JSON; "" if there are none, as for most requests. */
function factsOf(exchange: Exchange): string {
  const traced = tracedFields(exchange.request);
  const bearer = bearerOf(exchange);
  return traced === undefined && bearer === undefined ? "" : asciiJson({ bearer, traced });
}

/** Returns the body: as a whole, if all of it has arrived with the head, else as it arrives. */
async function bodyOf({ request, head }: Exchange): Promise<Uint8Array | AsyncIterable<Uint8Array>> {
  if (head.contentLength !== undefined && head.contentLength <= MAX_WHOLE_BYTES) {
    // The parser reports the body after the head, in the same turn of the event loop.
    await nextTurn();
    if (request.raw.complete && !isHttp2(request.raw)) return request.incoming.read(MAX_WHOLE_BYTES);
  }
  return request.incoming.passing();
}

/** The request that a connection of HTTP/1 waits for. */
const current = new WeakMap<Socket, LinkedCall>();

/** Notifies the worker when the client ends its side of the connection before the response. */
function followHalfClose(request: NodeRequest, call: LinkedCall): void {
  if (isHttp2(request)) return;
  const { socket } = request;
  if (!current.has(socket)) socket.once("end", () => current.get(socket)?.endConnection());
  current.set(socket, call);
  if (socket.readableEnded) call.endConnection();
}

/** Returns the facts about the token of a request that a handler may see. */
function bearerOf({ request: { token } }: Exchange): Bearer | undefined {
  return token && { id: token.id, name: token.name, scopes: token.scopes };
}

type AnyResponse = Omit<LinkedResponse, "body"> & { readonly body: Buffer | LinkedBody | IncomingMessage };

function respond(exchange: Exchange, received: AnyResponse): unknown {
  const { response } = exchange;
  const { rawHeaders, statusCode, body } = received;
  const refused = headerOf(rawHeaders, REFUSED_FIELD);
  const isPassed = headerOf(rawHeaders, PASSED_FIELD) !== undefined;
  if (!isPassed && refused === undefined) {
    const fields = innerResponseFields(rawHeaders, ofHost);
    const { headers, ...parts } = relayed(exchange, received, fields);
    Object.assign(response.headers, headers);
    // Koa ignores what middleware returns, so the parts of the response are set here.
    const { body: content, ...head } = parts;
    Object.assign(response, head);
    return response.send(content);
  }
  if (body instanceof LinkedBody) body.drop();
  else if (!(body instanceof Uint8Array)) body.resume();
  if (isPassed || refused === undefined) return undefined;
  Object.assign(response.headers, headerTable(innerResponseFields(rawHeaders, ofPage)));
  const { message, error } = readRefusal(refused);
  exchange.refuse(statusCode, message, error && deserializeError(error));
  return true;
}

function relayed(exchange: Exchange, received: AnyResponse, fields: readonly string[]): ResponseFields {
  const { body } = received;
  const failed = (error: Error) => exchange.report(error);
  if (body instanceof Uint8Array) return relayWhole(received, fields, body);
  if (body instanceof LinkedBody) return relayLinked(exchange, { ...received, body }, fields, failed);
  return relayResponse(exchange, body, fields, failed, { isOwn: true });
}

function headOf({ statusCode = 502, statusMessage = "", rawHeaders }: IncomingMessage): Omit<LinkedResponse, "body"> {
  return { statusCode, statusMessage, rawHeaders };
}

/**
 * Reads the header of a refusal. The module can set that header itself, so a malformed one is a
 * refusal without a reason.
 */
function readRefusal(text: string): Refusal {
  try {
    const { message, error } = JSON.parse(text) as Refusal;
    return { message: typeof message === "string" ? message : undefined, error: error ?? undefined };
  } catch {
    return { message: undefined, error: undefined };
  }
}
