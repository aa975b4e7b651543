/**
 * Forwards the requests for a module's apps to its worker or sandbox, and relays the responses.
 */
import { whenHalfClosed } from "../http/connection/lingering.ts";
import type { Exchange } from "../http/lifecycle/exchange.ts";
import type { WebSocketExchange } from "../http/websocket/exchange.ts";
import type { Channel } from "../relay/channel.ts";
import { deserializeError } from "../relay/errors.ts";
import { RelayFault } from "../relay/fault.ts";
import { headerTable, innerResponseFields } from "../relay/fields.ts";
import {
  INNER_FIELDS,
  type InnerAddress,
  type InnerTarget,
  openInnerRequest,
  PASSED_FIELD,
  REFUSED_FIELD,
} from "../relay/inner_request.ts";
import { relayEarlyHints } from "../relay/interim.ts";
import { trailersOf } from "../relay/message.ts";
import { OutgoingRequest, type Received } from "../relay/outgoing_request.ts";
import { relayResponse } from "../relay/response.ts";
import { joinTunnels } from "../relay/tunnel.ts";
import { tracedFields } from "../util/log.ts";
import { Agent, type IncomingMessage } from "../util/node_http.ts";
import type { Bearer, Refusal } from "./messages.ts";

/** Response fields of the worker that the host writes itself. */
const ofHost: ReadonlySet<string> = new Set([...INNER_FIELDS, "trailer", "date"]);
/** Fields that the host sets itself if it also makes the page of the response. */
const ofPage: ReadonlySet<string> = new Set([...ofHost, "content-length", "content-type"]);

/** Request fields that a sandboxed module does not get once the host has checked them. */
const ofTokens: ReadonlySet<string> = new Set(["authorization"]);

export interface ForwarderOptions {
  /** Whether tokens of the server are removed from the requests that they let in. */
  readonly withholdsTokens: boolean;
}

export class Forwarder {
  readonly #target: InnerTarget & { readonly agent: Agent };
  readonly #channel: Channel;
  readonly #leaving: (closeCode: number) => void;
  readonly #options: ForwarderOptions;
  /**
   * Requests that were sent to the worker. Another route of the module must not send them again.
   */
  readonly #forwarded = new WeakSet<Exchange>();

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
    this.#target = { ...address, agent: new Agent({ keepAlive: true, maxFreeSockets: 64 }) };
    this.#channel = channel;
    this.#leaving = leaving;
  }

  /** Closes the connections to the worker. */
  close(): void {
    this.#target.agent.destroy();
  }

  /** The handler of a route. Returns nothing when no handler of the module responds. */
  readonly handle = async (exchange: Exchange): Promise<unknown> => {
    if (this.#forwarded.has(exchange)) return undefined;
    this.#forwarded.add(exchange);
    const received = await this.#send(exchange, false);
    return received === undefined ? true : respond(exchange, received.incoming);
  };

  /** The handler of a websocket's route. */
  readonly upgrade = async (exchange: WebSocketExchange): Promise<unknown> => {
    const received = await this.#send(exchange, true);
    if (received === undefined) return true;
    const { incoming, tunnel } = received;
    if (tunnel === undefined) return respond(exchange, incoming);
    if (exchange.gone) tunnel.socket.destroy();
    else joinTunnels(exchange.tunnel(), tunnel, incoming.rawHeaders);
    return true;
  };

  /** Resolves to undefined when the worker has not responded. The exchange has ended then. */
  async #send(exchange: Exchange, isUpgrade: boolean): Promise<Received | undefined> {
    const { request, response } = exchange;
    const { raw } = request;
    const hasBody = !isUpgrade && (exchange.hasBody || request.buffered !== undefined);
    const isWithheld = this.#options.withholdsTokens && request.token !== undefined;
    const opened = openInnerRequest(raw, this.#target, {
      // Within middleware `raw.url` begins at the base of the app.
      url: request.context.originalUrl,
      host: request.header("host") ?? "localhost",
      upgrade: isUpgrade ? "websocket" : undefined,
      passesExpect: isUpgrade,
      ...(isWithheld && { withheld: ofTokens }),
      facts: { id: request.id, bearer: bearerOf(exchange), traced: tracedFields(request) },
    });
    const outgoing = new OutgoingRequest(opened, {
      body: hasBody ? request.body_stream : undefined,
      trailers: () => trailersOf(raw),
      isUpgrade,
      informed: (status, rawHeaders) => relayEarlyHints(raw, response.raw, status, rawHeaders),
    });
    const leaving = () => this.#leaving(exchange.mount?.closeCode ?? 1001);
    request.leaving.addEventListener("abort", leaving, { once: true });
    request.closed.addEventListener("abort", () => outgoing.abort(), { once: true });
    if (!isUpgrade) whenHalfClosed(raw, response.raw, () => outgoing.endConnection());
    try {
      return await outgoing.response;
    } catch (error) {
      await this.#unanswered(exchange, error);
      return undefined;
    }
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
    else {
      exchange.response.headers.retry_after = "1";
      exchange.refuse(503);
    }
  }
}

/** Returns the facts about the token of a request that a handler may see. */
function bearerOf({ request: { token } }: Exchange): Bearer | undefined {
  return token && { id: token.id, name: token.name, scopes: token.scopes };
}

function respond(exchange: Exchange, incoming: IncomingMessage): unknown {
  const { response } = exchange;
  const { headers, rawHeaders, statusCode = 502 } = incoming;
  if (headers[PASSED_FIELD] !== undefined) {
    incoming.resume();
    return undefined;
  }
  const refused = headers[REFUSED_FIELD];
  if (refused === undefined) {
    const failed = (error: Error) => exchange.report(error);
    const fields = innerResponseFields(rawHeaders, ofHost);
    const { headers: table, body, ...head } = relayResponse(exchange, incoming, fields, failed, { isOwn: true });
    Object.assign(response.headers, table);
    // Koa ignores what middleware returns, so the parts of the response are set here.
    Object.assign(response, head);
    return response.send(body);
  }
  incoming.resume();
  Object.assign(response.headers, headerTable(innerResponseFields(rawHeaders, ofPage)));
  const { message, error } = readRefusal(String(refused));
  exchange.refuse(statusCode, message, error && deserializeError(error));
  return true;
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
