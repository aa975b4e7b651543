import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Context } from "koa";
import type {
  Connection,
  HttpRequest,
  HttpUrl,
  JsonLimits,
  MultipartLimits,
  MultipartPart,
  PresentedToken,
  RequestHeaders,
} from "../../types.ts";
import { headerOf } from "../../util/header_fields.ts";
import type { NodeRequest, NodeResponse } from "../../util/node_messages.ts";
import type { CountingToken, TokenBearer } from "../../util/token_use.ts";
import { whenHalfClosed } from "../connection/lingering.ts";
import type { ProgressWatch } from "../connection/progress.ts";
import { type ClientFacts, plainAddress } from "../policy/proxies.ts";
import { IncomingBody } from "./body.ts";
import { headerTable } from "./head.ts";
import { MAX_JSON_BYTES, parseJson } from "./json_body.ts";
import { readParts } from "./multipart/parts.ts";
import type { Target } from "./paths.ts";

const empty = Buffer.alloc(0);

/** The field of Node's own message for the id of a request that another thread has passed on. */
export const idElsewhere = Symbol("modhost.id");

/** The id of a request is a random prefix of this process and a counter. */
const idPrefix = Math.floor(Math.random() * 36 ** 5)
  .toString(36)
  .padStart(5, "0");
let idCounter = 0;
/** Accepted ids of proxies: UUIDs, hexadecimal numbers, base64, and characters of URLs. */
const givenIdPattern = /^[\w.~:/+=@-]{1,128}$/;

/** The part of the service that a request uses. */
export interface RequestService {
  readonly watch: ProgressWatch;
  readonly proxies: { client(peer: string, encrypted: boolean, raw: readonly string[]): ClientFacts };
  /** Sends `100 Continue` to a client that waits for it. */
  invite(request: NodeRequest, response: NodeResponse): void;
}

/** The exchange that a request is part of. */
export interface RequestExchange {
  readonly service: RequestService;
  readonly response: { readonly raw: NodeResponse; bytes: number };
  /** The response is complete, or the client has left. */
  readonly gone: boolean;
  /** The request has a body that nobody has read. */
  readonly hasBody: boolean;
  /** Seconds that the app lets a client pause while it sends the body. */
  readonly uploadPause: number;
  /** Called when a token has admitted the request. */
  bear(token: CountingToken): void;
}

/**
 * The request as a handler sees it (contract, part 2). Costly fields are computed when they are
 * first read.
 */
export class Request implements HttpRequest, TokenBearer {
  readonly raw: NodeRequest;
  readonly method: string;
  readonly path: string;
  readonly host: string;
  /** Set once a buffered body is complete. */
  buffered: Buffer | undefined;
  token: PresentedToken | undefined = undefined;
  /** Koa's context of the request. */
  readonly context: Context;
  readonly #exchange: RequestExchange;
  readonly #target: Target;
  /** Copied at the start, because the address is unknown after the connection has ended. */
  readonly #peer: string;
  readonly #encrypted: boolean;
  #headers: RequestHeaders | undefined;
  #text: string | undefined;
  #url: HttpUrl | undefined;
  #id: string | undefined;
  #client: ClientFacts | undefined;
  #incoming: IncomingBody | undefined;
  #abort: AbortController | undefined;
  #leave: AbortController | undefined;
  #onLeave: (() => void) | undefined;
  #isLeft = false;
  #isWatched = false;

  constructor(exchange: RequestExchange, context: Context, target: Target, path: string, host: string) {
    const raw: NodeRequest = context.req;
    this.#exchange = exchange;
    this.#target = target;
    this.context = context;
    this.raw = raw;
    const { socket } = raw;
    this.#peer = socket.remoteAddress ?? "";
    this.#encrypted = (socket as TLSSocket).encrypted === true;
    this.method = raw.method as string;
    this.path = path;
    this.host = host;
  }

  get headers(): RequestHeaders {
    return (this.#headers ??= headerTable(this.raw.rawHeaders));
  }

  header(name: string): string | undefined {
    return headerOf(this.raw.rawHeaders, name.toLowerCase());
  }

  get url(): HttpUrl {
    return (this.#url ??= {
      path: this.path,
      raw_path: this.#target.rawPath,
      query: this.#target.query,
      host: this.#target.authority,
      scheme: this.#target.scheme,
    });
  }

  get body(): string {
    return (this.#text ??= this.body_bytes.toString("utf8"));
  }

  get body_bytes(): Buffer {
    return this.buffered ?? empty;
  }

  get body_stream(): AsyncIterable<Buffer> {
    return this.buffered === undefined ? this.incoming : once(this.buffered);
  }

  parts(limits: MultipartLimits = {}): AsyncIterable<MultipartPart> {
    return readParts(this.body_stream, this.header("content-type") ?? "", limits, this.closed);
  }

  async json<T = unknown>({ max_bytes = MAX_JSON_BYTES }: JsonLimits = {}): Promise<T> {
    if (this.#exchange.hasBody) this.buffered = await this.incoming.read(max_bytes);
    return parseJson(this.body_bytes, max_bytes) as T;
  }

  /** The body as it arrives. */
  get incoming(): IncomingBody {
    const { service, response, uploadPause } = this.#exchange;
    const invite = () => service.invite(this.raw, response.raw);
    return (this.#incoming ??= new IncomingBody(this.raw, service.watch, invite, uploadPause));
  }

  /** Bytes of the body that have been read. */
  get received(): number {
    return this.#incoming?.received ?? 0;
  }

  get conn(): Connection {
    return new SocketConnection(this.raw.socket);
  }

  get secure(): boolean {
    return this.#facts.secure;
  }

  get ip(): string {
    return this.#facts.ip;
  }

  get id(): string {
    return (this.#id ??= this.#givenId() ?? `${idPrefix}-${(++idCounter).toString(36)}`);
  }

  get forwarded_host(): string | undefined {
    return this.#facts.host;
  }

  get from_proxy(): boolean {
    return this.#facts.isProxied;
  }

  /**
   * Returns the id that a trusted proxy sent. Any other client could make two requests look like
   * one, or write into logs.
   */
  #givenId(): string | undefined {
    const elsewhere = (this.raw as { readonly [idElsewhere]?: string })[idElsewhere];
    if (elsewhere !== undefined) return elsewhere;
    const given = this.header("x-request-id");
    return given !== undefined && this.from_proxy && givenIdPattern.test(given) ? given : undefined;
  }

  get httpversion(): string {
    return this.raw.httpVersion;
  }

  get signal(): AbortSignal {
    this.watch();
    return this.closed;
  }

  /**
   * From now on, a client that ends its side of an HTTP/1 connection counts as gone. Otherwise it
   * still gets its response, because it may have ended its side right after the request.
   */
  watch(): void {
    if (this.#isWatched || this.#exchange.gone) return;
    this.#isWatched = true;
    whenHalfClosed(this.raw, this.#exchange.response.raw, (socket) => socket.end());
  }

  /**
   * Ends the connection when the client ended its side before `watch` was called: a body with
   * nothing to send would not notice.
   */
  endIfHalfClosed(): void {
    const { socket } = this.raw;
    // Over HTTP/2 other requests go through the connection.
    if (this.raw.httpVersionMajor < 2 && socket.readableEnded) socket.end();
  }

  /**
   * Aborted when the connection is closed. In contrast to `signal`, a client that only ends its
   * side still gets its response.
   */
  get closed(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#exchange.gone) this.abort();
    }
    return this.#abort.signal;
  }

  bear(token: CountingToken): void {
    this.token = token;
    this.#exchange.bear(token);
    if (token.moved === undefined) return;
    this.incoming.moved = token.moved;
    watchBytes(this.#exchange.response, token.moved);
  }

  /** Notifies the handler that the client has left. */
  abort(): void {
    this.#abort?.abort(new DOMException("The client left before the response was complete", "AbortError"));
  }

  get leaving(): AbortSignal {
    if (this.#leave === undefined) {
      this.#leave = new AbortController();
      if (this.#isLeft) this.leave();
    }
    return this.#leave.signal;
  }

  /** Calls back when `leaving` is aborted, at a lower cost. One callback only. */
  whenLeaving(callback: () => void): void {
    this.#onLeave = callback;
    if (this.#isLeft) callback();
  }

  /** Whether anybody waits for the module to be unloaded. */
  get watchesLeaving(): boolean {
    return this.#leave !== undefined || this.#onLeave !== undefined;
  }

  /** Notifies the handler that its module will be unloaded as soon as the request is over. */
  leave(): void {
    if (!this.#isLeft) this.#onLeave?.();
    this.#isLeft = true;
    this.#leave?.abort(new DOMException("The module of the request is being unloaded", "AbortError"));
  }

  get #facts(): ClientFacts {
    this.#client ??= this.#exchange.service.proxies.client(this.#peer, this.#encrypted, this.raw.rawHeaders);
    return this.#client;
  }
}

/**
 * Calls back whenever the byte count of the response grows. Only the few responses that are watched
 * pay for it.
 */
function watchBytes(response: { bytes: number }, moved: () => void): void {
  let { bytes } = response;
  Object.defineProperty(response, "bytes", {
    get: () => bytes,
    set(now: number) {
      bytes = now;
      moved();
    },
  });
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer, void, undefined> {
  if (bytes.length > 0) yield bytes;
}

class SocketConnection implements Connection {
  readonly socket: Socket;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  ip(): string {
    return plainAddress(this.socket.remoteAddress ?? "");
  }

  clientport(): number {
    return this.socket.remotePort ?? 0;
  }

  serverport(): number {
    return this.socket.localPort ?? 0;
  }

  ssl(): boolean {
    return (this.socket as TLSSocket).encrypted === true;
  }

  close(): void {
    this.socket.destroy();
  }
}
