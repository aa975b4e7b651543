/** Requests of an isolated module's apps: handed to its worker, and answered with what comes from there. */
import type { Socket } from "node:net";
import { pipeline } from "node:stream";
import type { TLSSocket } from "node:tls";
import type { Exchange } from "../http/exchange.ts";
import { connectionFields, joinSockets, switchingHead, trailersOf, wholeBody } from "../http/relay.ts";
import type { WebSocketExchange } from "../http/websocket_exchange.ts";
import {
  Agent,
  type ClientRequest,
  type IncomingMessage,
  request as openRequest,
  STATUS_CODES,
} from "../util/node_http.ts";
import { receivedError } from "./channel.ts";
import {
  type Bearer,
  INNER_FIELDS,
  inAscii,
  PASSED_FIELD,
  PEER_FIELD,
  type Peer,
  REFUSED_FIELD,
  type Refusal,
} from "./messages.ts";

/** Of an answer, what the host writes itself. */
const ofHost: ReadonlySet<string> = new Set([
  ...connectionFields,
  "transfer-encoding",
  "trailer",
  "date",
  ...INNER_FIELDS,
]);

export interface ForwarderDeps {
  /** The socket of the worker. */
  readonly path: string;
  readonly token: string;
  /** The module is about to leave: websockets are to be closed with this code. */
  leaving(closeCode: number): void;
  /** Whether the worker lives: known once it has answered, or has ended. */
  lives(): Promise<boolean>;
}

export class Forwarder {
  readonly #deps: ForwarderDeps;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 64 });
  /** The worker has been asked for these; another of its routes would ask it again. */
  readonly #asked = new WeakSet<Exchange>();

  constructor(deps: ForwarderDeps) {
    this.#deps = deps;
  }

  /** Closes the connections to the worker. */
  close(): void {
    this.#agent.destroy();
  }

  /** The handler of a route. Gives nothing when no handler of the module answers. */
  readonly handle = async (exchange: Exchange): Promise<unknown> => {
    if (this.#asked.has(exchange)) return undefined;
    this.#asked.add(exchange);
    const { request } = exchange;
    const outgoing = this.#open(exchange, false);
    const answered = answerTo(outgoing);
    request.leaving.addEventListener("abort", () => this.#deps.leaving(exchange.mount?.closeCode ?? 1001), {
      once: true,
    });
    request.signal.addEventListener("abort", () => outgoing.destroy(), { once: true });
    if (exchange.hasBody || request.buffered !== undefined) {
      // A handler may begin before any of the body is there.
      setImmediate(() => outgoing.headersSent || outgoing.destroyed || outgoing.flushHeaders());
      // The answer tells what became of a body that could not be sent.
      pipeline(request.body_stream, outgoing, () => undefined);
    } else outgoing.end();
    let incoming: IncomingMessage;
    try {
      incoming = await answered;
    } catch {
      await this.#unanswered(exchange);
      return true;
    }
    return answerWith(exchange, incoming);
  };

  /** The handler of a websocket's route: once the worker accepts, the two connections are one. */
  readonly upgrade = async (exchange: WebSocketExchange): Promise<unknown> => {
    const outgoing = this.#open(exchange, true);
    const upgraded = new Promise<{ answer: IncomingMessage; inner: Socket; head: Buffer }>((resolve) => {
      outgoing.once("upgrade", (answer, inner, head) => resolve({ answer, inner: inner as Socket, head }));
    });
    exchange.request.leaving.addEventListener("abort", () => this.#deps.leaving(exchange.mount?.closeCode ?? 1001), {
      once: true,
    });
    exchange.request.signal.addEventListener("abort", () => outgoing.destroy(), { once: true });
    const answered = answerTo(outgoing);
    outgoing.end();
    try {
      const first = await Promise.race([upgraded, answered]);
      if (!("inner" in first)) return answerWith(exchange, first);
      if (exchange.gone) {
        first.inner.destroy();
        return true;
      }
      const { socket, head } = exchange.tunnel();
      socket.write(switchingHead(first.answer.rawHeaders));
      if (first.head.length > 0) socket.write(first.head);
      if (head.length > 0) first.inner.write(head);
      joinSockets(socket, first.inner);
    } catch {
      await this.#unanswered(exchange);
    }
    return true;
  };

  /** The connection ended without an answer: with its worker, or because a handler closed it. */
  async #unanswered(exchange: Exchange): Promise<void> {
    const lives = await this.#deps.lives();
    if (exchange.gone) return;
    if (lives) exchange.cut();
    else refuseLater(exchange);
  }

  #open(exchange: Exchange, isUpgrade: boolean): ClientRequest {
    const { raw } = exchange.request;
    const facts = { id: exchange.request.id, peer: peerOf(raw.socket), bearer: bearerOf(exchange) };
    const headers: string[] = [PEER_FIELD, inAscii({ token: this.#deps.token, ...facts })];
    let isFramed = false;
    let hasHost = false;
    for (let at = 0; at < raw.rawHeaders.length; at += 2) {
      const name = raw.rawHeaders[at] as string;
      const lower = name.toLowerCase();
      if (lower.startsWith(":")) continue;
      if (lower !== "expect" || !isUpgrade) if (connectionFields.has(lower) || INNER_FIELDS.has(lower)) continue;
      if (lower === "content-length" || lower === "transfer-encoding") isFramed = true;
      if (lower === "host") hasHost = true;
      headers.push(name, raw.rawHeaders[at + 1] as string);
    }
    if (!hasHost) headers.push("Host", exchange.request.headers.host ?? "localhost");
    if (exchange.hasBody && !isFramed) headers.push("Transfer-Encoding", "chunked");
    if (isUpgrade) headers.push("Connection", "Upgrade", "Upgrade", "websocket");
    return openRequest({
      socketPath: this.#deps.path,
      agent: isUpgrade ? false : this.#agent,
      method: raw.method as string,
      // Around middleware `raw.url` begins at the base of the app.
      path: exchange.request.context.originalUrl,
      headers: headers as never,
      setHost: false,
    });
  }
}

const peers = new WeakMap<Socket, Peer>();

/** The two ends of a client's connection, which stay what they are. */
export function peerOf(socket: Socket): Peer {
  let peer = peers.get(socket);
  if (peer === undefined) {
    const { remoteAddress, remotePort, localPort, localAddress } = socket;
    const encrypted = (socket as TLSSocket).encrypted === true;
    peers.set(socket, (peer = { remoteAddress, remotePort, localPort, localAddress, encrypted }));
  }
  return peer;
}

/** What a handler may know of the token that let the request in. */
function bearerOf({ request: { token } }: Exchange): Bearer | undefined {
  return token && { id: token.id, name: token.name, scopes: token.scopes };
}

function answerTo(outgoing: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    outgoing.once("response", resolve);
    outgoing.on("error", reject);
  });
}

/** The worker ended before it had answered. */
function refuseLater(exchange: Exchange): void {
  exchange.response.headers.retry_after = "1";
  exchange.refuse(503);
}

function answerWith(exchange: Exchange, incoming: IncomingMessage): unknown {
  const { response } = exchange;
  const { rawHeaders, headers, statusCode = 502, statusMessage } = incoming;
  if (headers[PASSED_FIELD] !== undefined) {
    incoming.resume();
    return undefined;
  }
  const refused = headers[REFUSED_FIELD];
  const fields: Record<string, string[]> = {};
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase();
    if (ofHost.has(name)) continue;
    if (refused !== undefined && (name === "content-length" || name === "content-type")) continue;
    (fields[name.replaceAll("-", "_")] ??= []).push(rawHeaders[at + 1] as string);
  }
  for (const [name, values] of Object.entries(fields)) {
    response.headers[name] = values.length === 1 ? (values[0] as string) : values;
  }
  if (refused !== undefined) {
    incoming.resume();
    const { message, error } = JSON.parse(String(refused)) as Refusal;
    exchange.refuse(statusCode, message, error && receivedError(error));
    return true;
  }
  response.status_code = statusCode;
  if (statusMessage !== undefined && statusMessage !== STATUS_CODES[statusCode]) response.status = statusMessage;
  const { trailer } = headers;
  if (trailer !== undefined) {
    response.trailer_names = trailer.split(",").map((name) => name.trim());
    response.trailers = () => trailersOf(incoming);
  }
  return response.send(wholeBody(incoming, exchange.request.method) ?? incoming);
}
