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
} from "../types.ts";
import type { CountingToken, TokenBearer } from "../util/token_use.ts";
import { IncomingBody } from "./body.ts";
import { headerTable } from "./head.ts";
import { MAX_JSON_BYTES, parseJson } from "./json_body.ts";
import { readParts } from "./multipart.ts";
import type { NodeRequest, NodeResponse } from "./node_messages.ts";
import type { Target } from "./paths.ts";
import type { ProgressWatch } from "./progress.ts";
import { type ClientFacts, plainAddress } from "./proxies.ts";

const empty = Buffer.alloc(0);

/** Ids of requests that come from another thread of this server, where they have one. By Node's own message. */
export const idsElsewhere = new WeakMap<object, string>();

/** A prefix that tells this process from others, and a counter. */
const idPrefix = Math.floor(Math.random() * 36 ** 5)
  .toString(36)
  .padStart(5, "0");
let idCounter = 0;
/** Ids that proxies give: UUIDs, hexadecimal numbers, base64, and what stands in URLs. */
const givenIdPattern = /^[\w.~:/+=@-]{1,128}$/;

/** What a request needs of the service that it came to. */
export interface RequestService {
  readonly watch: ProgressWatch;
  readonly proxies: { client(peer: string, encrypted: boolean, raw: readonly string[]): ClientFacts };
  /** Asks a client that waits for it to send the body. */
  invite(request: NodeRequest, response: NodeResponse): void;
}

/** The exchange that a request is part of. */
export interface RequestPlace {
  readonly service: RequestService;
  readonly response: { readonly raw: NodeResponse };
  /** The answer is complete, or the client went away. */
  readonly gone: boolean;
  /** The request has a body that nobody has read. */
  readonly hasBody: boolean;
  /** Seconds that the app lets a client pause while it sends the body. */
  readonly uploadPause: number;
  /** The request was let in with a token. */
  bear(token: CountingToken): void;
}

/** The request as a handler sees it (contract, part 2); costly fields are worked out when they are asked for. */
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
  readonly #exchange: RequestPlace;
  readonly #target: Target;
  /** Known only while the connection lasts, and asked for after its end, too. */
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
  #isLeft = false;

  constructor(exchange: RequestPlace, context: Context, target: Target, path: string, host: string) {
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
    return readParts(this.body_stream, this.headers.content_type ?? "", limits, this.signal);
  }

  async json<T = unknown>({ max_bytes = MAX_JSON_BYTES }: JsonLimits = {}): Promise<T> {
    if (this.#exchange.hasBody) this.buffered = await this.incoming.read(max_bytes);
    return parseJson(this.body_bytes, max_bytes) as T;
  }

  /** The body on its way in. */
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

  /** That of a trusted proxy: anybody else could make two requests look like one, or write into logs. */
  #givenId(): string | undefined {
    const elsewhere = idsElsewhere.get(this.raw);
    if (elsewhere !== undefined) return elsewhere;
    const { x_request_id: given } = this.headers;
    return given !== undefined && this.from_proxy && givenIdPattern.test(given) ? given : undefined;
  }

  get httpversion(): string {
    return this.raw.httpVersion;
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#exchange.gone) this.abort();
    }
    return this.#abort.signal;
  }

  bear(token: CountingToken): void {
    this.token = token;
    this.#exchange.bear(token);
  }

  /** Tells the handler that nobody waits for the answer any more. */
  abort(): void {
    this.#abort?.abort(new DOMException("The client went away before the answer was complete", "AbortError"));
  }

  get leaving(): AbortSignal {
    if (this.#leave === undefined) {
      this.#leave = new AbortController();
      if (this.#isLeft) this.leave();
    }
    return this.#leave.signal;
  }

  /** Somebody has asked for `leaving`. */
  get isTold(): boolean {
    return this.#leave !== undefined;
  }

  /** Tells the handler that its module is to be unloaded as soon as the request is over. */
  leave(): void {
    this.#isLeft = true;
    this.#leave?.abort(new DOMException("The module that answers the request is leaving", "AbortError"));
  }

  get #facts(): ClientFacts {
    this.#client ??= this.#exchange.service.proxies.client(this.#peer, this.#encrypted, this.raw.rawHeaders);
    return this.#client;
  }
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
