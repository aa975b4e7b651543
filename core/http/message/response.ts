import { ReadStream } from "node:fs";
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { HttpRequest, HttpResponse, PooledBody, ResponseFields, ResponseHeaders } from "../../types.ts";
import { piecesOf } from "../../util/body_stream.ts";
import { bindListeners } from "../../util/bound_listeners.ts";
import { wireFields, wireName } from "../../util/header_fields.ts";
import { IncomingMessage } from "../../util/node_http.ts";
import type { NodeResponse } from "../../util/node_messages.ts";
import { contains_token } from "../../util/url.ts";
import { sendFile } from "../files/send_file.ts";
import { filePieces } from "../patches/node/file_pieces.ts";
import { contentHeaders, type DefaultHeaders, isNamed, namedValue } from "../policy/default_headers.ts";
import { EventBody } from "../sse/body.ts";
import { assertStatus, bodiless, bodyRemedy, kindOf, RESET_CONTENT } from "./handler_result.ts";
import { EVENT_HEAD_DELAY_MS, HEAD_DELAY_MS, LateHead } from "./late_head.ts";
import { collectHeaders, cookiesOf, countWrites, pourHeaders } from "./raw_response.ts";
import { discard, type Outlet, pump } from "./stream.ts";

export type Body = NonNullable<ResponseFields["body"]>;

/** The part of an exchange that its response uses. */
export interface ResponseExchange extends Outlet {
  readonly request: HttpRequest & { watch(): void; endIfHalfClosed(): void };
  readonly response: Response;
  readonly http2: boolean;
  /** Whether trailers may follow the body. */
  readonly canTrail: boolean;
  /** Headers that the operator or the app adds to responses that lack them. */
  readonly defaults: DefaultHeaders | undefined;
  /** Called for a response with a body but no content type, to warn its author. */
  untyped(): void;
  /** Whether the connection is closed after this response. */
  readonly closing: boolean;
  /** Sends the last bytes. */
  end(data?: string | Uint8Array): void;
  /** Responds to an error. */
  fail(thrown: unknown): void;
  /** Runs a callback of the handler's module in that module's asynchronous context. */
  inContext<R>(code: () => R): R;
}

/** False for a value that is sent as an empty body. */
function hasContent(body: Body | undefined): boolean {
  return body !== undefined && body !== null && (body as { length?: number }).length !== 0;
}

/** Copying up to this many bytes of a pooled body costs less than sending it piece by piece. */
const MAX_COPIED_BYTES = 64 * 1024;

/** Whether a pooled body is in memory as a whole. */
const isWhole = (body: object): body is PooledBody & { readonly whole: Uint8Array } =>
  "whole" in body && body.whole instanceof Uint8Array && "release" in body;

async function* only(body: string | Uint8Array): AsyncGenerator<string | Uint8Array, void, undefined> {
  yield body;
}

/**
 * Reserves memory for a response that a handler sends from a file. Resolves when memory is
 * available; returns undefined when it is available now. While many clients are slow, responses
 * that have not begun wait here without using memory.
 */
export function roomToSend({ response }: { readonly response: HttpResponse }): Promise<void> | undefined {
  return response instanceof Response ? response.enter() : undefined;
}

/**
 * Whether middleware before the app gets the body before it is sent. Middleware expects a file as a
 * stream.
 */
export function isSeenByMiddleware({ response }: { readonly response: HttpResponse }): boolean {
  return response instanceof Response && response.sink !== undefined;
}

/** The response as a handler sees it (contract, part 2). Only this class writes responses. */
export class Response implements HttpResponse {
  status_code = 200;
  /** The reason phrase, for HTTP/1; undefined for the standard one. */
  status: string | undefined = undefined;
  headers: ResponseHeaders = {};
  body: Body | undefined = undefined;
  trailers: ResponseHeaders | (() => ResponseHeaders) | undefined = undefined;
  trailer_names: readonly string[] | undefined = undefined;
  readonly raw: NodeResponse;
  readonly #exchange: ResponseExchange;
  /** Whether a response was given. Values that are returned or sent later are ignored. */
  responded = false;
  /**
   * Whether the response depends on Origin, in addition to the headers that a handler names in
   * Vary.
   */
  variesByOrigin = false;
  /** Body bytes handed to the connection. */
  bytes = 0;
  /**
   * Whether the system has taken as many bytes as the response announced. The client then has the
   * whole response, whether or not `end` was called.
   */
  delivered = false;
  /**
   * Receives the response instead of the connection, so that middleware before the handler sees it
   * first.
   */
  sink: ((body: Body | undefined) => void) | undefined;
  /** Set while middleware may write on `raw`. */
  #stopCounting: (() => void) | undefined;
  #onDestroy: (() => void) | undefined;
  /** The head of a streamed response. */
  #head: LateHead | undefined;
  /** The default of X-Content-Type-Options that `expose` set on `raw`. */
  #exposedSniffing: string | undefined;

  constructor(exchange: ResponseExchange, raw: NodeResponse) {
    this.#exchange = exchange;
    this.raw = raw;
  }

  get on_destroy(): (() => void) | undefined {
    return this.#onDestroy;
  }

  set on_destroy(handler: (() => void) | undefined) {
    this.#onDestroy = handler;
    if (handler !== undefined) this.#exchange.request.watch();
  }

  get request(): HttpRequest {
    return this.#exchange.request;
  }

  get finished(): boolean {
    return this.#exchange.gone;
  }

  get headers_sent(): boolean {
    return this.raw.headersSent;
  }

  get is_head_request(): boolean {
    return this.#exchange.request.method === "HEAD";
  }

  send(body?: Body): true {
    if (this.responded) {
      discard(body);
      return true;
    }
    this.responded = true;
    try {
      const content = body ?? this.body;
      if (this.#exchange.defaults?.content_type === undefined && this.#lacksType(content)) this.#exchange.untyped();
      this.write(content);
    } catch (error) {
      this.#exchange.fail(error);
    }
    return true;
  }

  send_file(source: Parameters<HttpResponse["send_file"]>[0]): true {
    if (this.responded) return true;
    this.responded = true;
    sendFile(this, source).catch((error: unknown) => this.#exchange.fail(error));
    return true;
  }

  /** The content type of the response: its own, else the default of the operator or the app. */
  get type(): string | undefined {
    const own = namedValue(this.headers, "Content-Type") ?? this.#exchange.defaults?.content_type;
    return own === undefined ? undefined : String(own);
  }

  /** Whether the response has a body but no content type. */
  #lacksType(body: Body | undefined): boolean {
    const { headers, status_code } = this;
    if (typeof headers.content_type === "string" || !hasContent(body)) return false;
    if (Number(headers.content_length ?? 1) === 0) return false;
    return !bodiless(status_code) && status_code !== RESET_CONTENT && !this.#has("Content-Type");
  }

  /**
   * Whether the response has the header: in its table or, while middleware may write to it, on
   * Node's response.
   */
  #has(wire: string): boolean {
    return isNamed(this.headers, wire) || (this.#stopCounting !== undefined && this.raw.hasHeader(wire));
  }

  /**
   * Resolves when memory for the source of the body is available; undefined when it is available
   * now.
   */
  enter(): Promise<void> | undefined {
    return this.#exchange.enter();
  }

  /**
   * Lets middleware write on Node's own response until `reclaim`. It gets the headers so far and
   * the status 404. The host counts what is written, and the client must make progress in reading
   * it.
   */
  expose(): void {
    const raw = this.raw as ServerResponse;
    this.#exposedSniffing = this.#addSniffing();
    pourHeaders(this.headers, raw, this.#exchange.http2);
    if (this.variesByOrigin) pourHeaders({ vary: "Origin" }, raw, this.#exchange.http2);
    this.headers = {};
    raw.statusCode = 404;
    if (this.#stopCounting !== undefined) return;
    bindListeners(raw);
    // A late write fails for its caller. Nobody else needs the error.
    raw.on("error", () => undefined);
    this.#stopCounting = countWrites(this.#exchange, raw);
  }

  /**
   * Ends `expose`, and takes the headers that were set on `raw`. Does nothing while there is a
   * `sink`.
   */
  reclaim(): void {
    if (this.#stopCounting === undefined || this.sink !== undefined) return;
    this.#stopCounting();
    this.#stopCounting = undefined;
    this.#removeSniffing();
    if (!this.raw.headersSent) collectHeaders(this.raw as ServerResponse, this.headers, this.#exchange.http2);
  }

  /**
   * Removes the headers that describe a response that is not sent, in any spelling, here and on
   * `raw`.
   */
  dropContentHeaders(): void {
    for (const name of Object.keys(this.headers)) {
      if (contentHeaders.has(name.toLowerCase().replaceAll("-", "_"))) delete this.headers[name];
    }
    if (this.#stopCounting === undefined) return;
    for (const name of contentHeaders) this.raw.removeHeader(wireName(name));
  }

  /**
   * Writes the response. Throws before anything is sent when a header or the body cannot be sent.
   */
  write(body: Body | undefined): void {
    try {
      this.#addSniffing();
      const type = this.#exchange.defaults?.content_type;
      if (type !== undefined && this.#lacksType(body)) this.headers.content_type = type;
      if (this.sink !== undefined) {
        this.sink(body);
        return;
      }
      this.reclaim();
      assertStatus(this.status_code);
      this.#head?.drop();
      const isReset = this.status_code === RESET_CONTENT;
      // A 205 has no content (RFC 9110, 15.3.6), and Node's HTTP/2 sends none, so no length may be
      // announced.
      if (isReset) discard(body);
      if (isReset || body === undefined || body === null) this.#writeWhole("");
      else if (typeof body === "string" || body instanceof Uint8Array) this.#writeWhole(body);
      else if (isWhole(body) && this.trailers === undefined) this.#writePooled(body);
      else this.#writeStream(body);
    } catch (error) {
      discard(body);
      throw error;
    }
  }

  /**
   * Adds the default of X-Content-Type-Options where the response has none. Returns the value that
   * it added.
   */
  #addSniffing(): string | undefined {
    this.#removeSniffing();
    const option = this.#exchange.defaults?.x_content_type_options;
    if (option === undefined || this.#has("X-Content-Type-Options")) return undefined;
    this.headers.x_content_type_options = option;
    return option;
  }

  /**
   * Removes the default that `expose` set before the responding app was known: that app may have
   * another default.
   */
  #removeSniffing(): void {
    const name = "X-Content-Type-Options";
    const set = this.#exposedSniffing;
    if (set !== undefined && this.raw.getHeader(name) === set && !this.raw.headersSent) this.raw.removeHeader(name);
    this.#exposedSniffing = undefined;
  }

  #writeWhole(body: string | Uint8Array): void {
    if (this.trailers !== undefined && this.#exchange.canTrail) {
      if (this.#exchange.http2 || this.headers.content_length !== undefined) this.#writeStream(only(body));
      else this.#writeTrailed(body);
      return;
    }
    const { raw } = this;
    const length = typeof body === "string" ? Buffer.byteLength(body) : body.length;
    const fields = wireFields(this.headers, this.#exchange.http2);
    if (!bodiless(this.status_code)) fields.push("Content-Length", String(length));
    this.#writeHead(fields);
    if (length === 0 || this.is_head_request || bodiless(this.status_code)) {
      this.#exchange.end();
      return;
    }
    this.bytes += length;
    if (typeof body === "string") this.#exchange.end(body);
    else this.#exchange.end(body);
    if (raw.writableLength > 0) this.#exchange.watchWriting();
  }

  /**
   * Writes a body and its trailers in one write, because several writes take half of the time of a
   * small response.
   */
  #writeTrailed(body: string | Uint8Array): void {
    const { raw } = this;
    const fields = wireFields(this.headers, false);
    const announced = this.#trailerNames();
    if (announced.length > 0) fields.push("Trailer", announced.join(", "));
    this.#writeHead(fields);
    if (!this.is_head_request && !bodiless(this.status_code)) {
      if (announced.length > 0) this.#addTrailers();
      this.bytes += typeof body === "string" ? Buffer.byteLength(body) : body.length;
      if (body.length > 0) {
        if (typeof body === "string") this.#exchange.end(body);
        else this.#exchange.end(body);
        if (raw.writableLength > 0) this.#exchange.watchWriting();
        return;
      }
    }
    this.#exchange.end();
  }

  /**
   * Writes a pooled body that is in memory. The connection has mostly taken the bytes as soon as
   * they are written, so they are released at once.
   */
  #writePooled(body: PooledBody & { readonly whole: Uint8Array }): void {
    const { raw } = this;
    const { whole } = body;
    if (this.#exchange.http2) {
      // HTTP/2 also emits "finish" for a reset stream, and may still use the bytes then.
      if (whole.length > MAX_COPIED_BYTES) this.#writeStream(body);
      else {
        this.#writeWhole(Buffer.from(whole));
        body.release(whole);
      }
      return;
    }
    this.#writeWhole(whole);
    if (raw.writableLength === 0) body.release(whole);
    else (raw as ServerResponse).once("finish", () => body.release(whole));
  }

  #writeStream(body: Exclude<Body, string | Uint8Array>): void {
    const source = piecesOf(body);
    if (source === undefined) throw new TypeError(`A response body cannot be ${kindOf(body)}: ${bodyRemedy}`);
    if (source instanceof EventBody) source.endWith(this.request.leaving);
    const fields = wireFields(this.headers, this.#exchange.http2);
    const length = this.headers.content_length;
    if (length !== undefined) fields.push("Content-Length", String(length));
    const mayTrail = length === undefined && this.#exchange.canTrail;
    const announced = mayTrail ? this.#trailerNames() : [];
    if (announced.length > 0) fields.push("Trailer", announced.join(", "));
    if (this.is_head_request || bodiless(this.status_code)) {
      this.#writeHead(fields);
      discard(source);
      this.#exchange.end();
      return;
    }
    const head = new LateHead(
      {
        raw: this.raw,
        isOver: () => this.#exchange.gone,
        write: () => {
          this.#writeHead(fields);
          // A stream may have nothing to send for a long time. Only the end of the client's side
          // then shows that the client has left.
          if (!(source instanceof ReadStream)) this.#exchange.request.watch();
        },
        silent: () => source instanceof ReadStream || this.#exchange.request.endIfHalfClosed(),
        failed: (error) => this.#exchange.fail(error),
      },
      source instanceof EventBody ? EVENT_HEAD_DELAY_MS : HEAD_DELAY_MS,
    );
    this.#head = head;
    // The body is the response of an upstream server, which has begun already.
    if (source instanceof IncomingMessage || ("hasBegun" in source && source.hasBegun === true)) head.flush();
    const file = source instanceof ReadStream && length !== undefined ? filePieces(source, Number(length)) : undefined;
    const expected = length === undefined ? undefined : Number(length);
    this.#exchange
      .inContext(() => pump(this.#exchange, file ?? source, expected, head))
      .then(() => {
        if (!head.begin()) return;
        if (announced.length > 0 && this.trailers !== undefined) this.#addTrailers();
        this.#exchange.end();
      })
      .catch((error: unknown) => this.#exchange.fail(error))
      .finally(() => head.drop());
  }

  #writeHead(fields: string[]): void {
    const { raw } = this;
    if (this.variesByOrigin && !contains_token(String(this.headers.vary ?? ""), "origin"))
      fields.push("Vary", "Origin");
    if (this.#exchange.closing) fields.push("Connection", "close");
    // These cookies were set before the host got the request. Cookies of the app would replace
    // them.
    if (raw.hasHeader("Set-Cookie")) for (const line of cookiesOf(raw)) fields.push("Set-Cookie", line);
    if (this.status !== undefined && !this.#exchange.http2) {
      (raw as ServerResponse).writeHead(this.status_code, this.status.replace(/^\d{3} /, ""), fields);
    } else {
      (raw as ServerResponse).writeHead(this.status_code, fields);
    }
  }

  /**
   * Returns the names of the trailers, and the names in a `Trailer` header, which is only used when
   * trailers can follow.
   */
  #trailerNames(): string[] {
    const { trailers, trailer_names } = this;
    const own = typeof trailers === "function" ? (trailer_names ?? []) : Object.keys(trailers ?? {});
    const header = namedValue(this.headers, "Trailer");
    if (header === undefined) return own.map(wireName);
    const named = String(header)
      .split(",")
      .map((name) => name.trim());
    return [...new Set([...own, ...named.filter((name) => name !== "")].map(wireName))];
  }

  #addTrailers(): void {
    const given = this.trailers ?? {};
    const trailers = typeof given === "function" ? this.#exchange.inContext(given) : given;
    const fields = wireFields(trailers, this.#exchange.http2);
    const lines: Record<string, string[]> = {};
    for (let at = 0; at < fields.length; at += 2) (lines[fields[at] as string] ??= []).push(fields[at + 1] as string);
    (this.raw as ServerResponse).addTrailers(lines as OutgoingHttpHeaders);
  }
}
