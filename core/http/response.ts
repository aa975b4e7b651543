import { ReadStream } from "node:fs";
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { HttpRequest, HttpResponse, PooledBody, ResponseFields, ResponseHeaders } from "../types.ts";
import { piecesOf } from "../util/body_stream.ts";
import { wireFields, wireName } from "../util/header_fields.ts";
import { contains_token } from "../util/url.ts";
import { bodyRemedy, kindOf } from "./answer_fault.ts";
import { addDefault, type DefaultHeaders, isNamed, namedValue } from "./default_headers.ts";
import { EventBody } from "./event_body.ts";
import type { NodeResponse } from "./node_messages.ts";
import { filePieces } from "./patches/node/file_pieces.ts";
import { collectHeaders, cookiesOf, countWrites, pourHeaders } from "./raw_response.ts";
import { sendFile } from "./send_file.ts";
import { discard, type Outlet, pump } from "./stream.ts";

export type Body = NonNullable<ResponseFields["body"]>;

/** The request that is answered, as far as its answer has to know it. */
export interface AnsweredRequest extends Outlet {
  readonly request: HttpRequest;
  readonly response: Response;
  readonly http2: boolean;
  /** May trailers follow the body? */
  readonly canTrail: boolean;
  /** What the operator or the app adds to answers that do not say it themselves. */
  readonly defaults: DefaultHeaders | undefined;
  /** An answer has a body and no content type: its author should know. */
  untyped(): void;
  /** The connection is closed after this answer. */
  readonly closing: boolean;
  /** Sends the last bytes. */
  end(data?: string | Uint8Array): void;
  /** Answers what was thrown on the way. */
  fail(thrown: unknown): void;
}

/** Statuses that carry no body and no length. */
export function bodiless(status: number): boolean {
  return status === 204 || status === 304;
}

/** False for what is sent as an empty body. */
function hasContent(body: Body | undefined): boolean {
  return body !== undefined && body !== null && (body as { length?: number }).length !== 0;
}

/** Of a pooled body: copying so much costs less than sending it piece by piece. */
const MAX_COPIED_BYTES = 64 * 1024;

/** All of a pooled body is at hand. */
const isWhole = (body: object): body is PooledBody & { readonly whole: Uint8Array } =>
  "whole" in body && body.whole instanceof Uint8Array && "release" in body;

/** Headers that describe an answer, and how it may be kept: they are not those of an error page in its place. */
const answerHeaders: ReadonlySet<string> = new Set([
  "accept_ranges",
  "age",
  "cache_control",
  "cdn_cache_control",
  "content_digest",
  "content_disposition",
  "content_encoding",
  "content_language",
  "content_length",
  "content_location",
  "content_md5",
  "content_range",
  "content_type",
  "digest",
  "etag",
  "expires",
  "last_modified",
  "pragma",
  "repr_digest",
  "surrogate_control",
]);

async function* only(body: string | Uint8Array): AsyncGenerator<string | Uint8Array, void, undefined> {
  yield body;
}

/**
 * For a handler that opens a file for its answer: resolves when there is room for one more, undefined when there is. While
 * many clients take nothing, answers that have not begun wait here, and hold nothing.
 */
export function roomToSend({ response }: { readonly response: HttpResponse }): Promise<void> | undefined {
  return response instanceof Response ? response.enter() : undefined;
}

/** Middleware stands before the app of a handler, and gets the body before it is sent: a file as the stream that it knows. */
export function isSeenByMiddleware({ response }: { readonly response: HttpResponse }): boolean {
  return response instanceof Response && response.sink !== undefined;
}

/** The response as a handler sees it (contract, part 2), and the one place that writes an answer. */
export class Response implements HttpResponse {
  status_code = 200;
  /** A reason phrase of its own, for HTTP/1. */
  status: string | undefined = undefined;
  headers: ResponseHeaders = {};
  body: Body | undefined = undefined;
  trailers: ResponseHeaders | (() => ResponseHeaders) | undefined = undefined;
  trailer_names: readonly string[] | undefined = undefined;
  on_destroy: (() => void) | undefined = undefined;
  readonly raw: NodeResponse;
  readonly #exchange: AnsweredRequest;
  /** An answer has been given; whatever is returned or sent later is ignored. */
  answered = false;
  /** The answer differs by Origin, whatever else a handler says that it varies by. */
  variesByOrigin = false;
  /** Body bytes handed to the connection. */
  bytes = 0;
  /** The system has taken as many bytes as the answer announced: the client needs no more, whether or not `end` was called. */
  delivered = false;
  /** Takes the answer in the place of the connection: middleware that stands before the handler shall see it first. */
  sink: ((body: Body | undefined) => void) | undefined;
  /** Set while middleware may write on `raw`. */
  #stopCounting: (() => void) | undefined;

  constructor(exchange: AnsweredRequest, raw: NodeResponse) {
    this.#exchange = exchange;
    this.raw = raw;
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
    if (this.answered) {
      discard(body);
      return true;
    }
    this.answered = true;
    try {
      const content = body ?? this.body;
      if (this.headers.content_type === undefined && hasContent(content)) this.#addType();
      this.write(content);
    } catch (error) {
      this.#exchange.fail(error);
    }
    return true;
  }

  send_file(source: Parameters<HttpResponse["send_file"]>[0]): true {
    if (this.answered) return true;
    this.answered = true;
    sendFile(this, source).catch((error: unknown) => this.#exchange.fail(error));
    return true;
  }

  /** The content type of the operator or the app, for a body that came without one. */
  #addType(): void {
    if (bodiless(this.status_code) || isNamed(this.headers, "Content-Type")) return;
    const type = this.#exchange.defaults?.content_type;
    if (type === undefined) this.#exchange.untyped();
    else this.headers.content_type = type;
  }

  /** Resolves when there is room for what the body will be read from; undefined when there is. */
  enter(): Promise<void> | undefined {
    return this.#exchange.enter();
  }

  /**
   * Lets middleware answer on Node's own response, within the bounds of the host: it has the headers so far and the
   * status 404, what is written on it is counted, and whoever reads it must make progress. Until `reclaim`.
   */
  expose(): void {
    const raw = this.raw as ServerResponse;
    this.#addDefaults();
    pourHeaders(this.headers, raw, this.#exchange.http2);
    if (this.variesByOrigin) pourHeaders({ vary: "Origin" }, raw, this.#exchange.http2);
    this.headers = {};
    raw.statusCode = 404;
    if (this.#stopCounting !== undefined) return;
    // A late write fails where it was made; nobody else need hear of it.
    raw.on("error", () => undefined);
    this.#stopCounting = countWrites(this.#exchange, raw);
  }

  /** Nobody else writes on `raw` any more; the headers that were set there are here. Not while there is a `sink`. */
  reclaim(): void {
    if (this.#stopCounting === undefined || this.sink !== undefined) return;
    this.#stopCounting();
    this.#stopCounting = undefined;
    if (!this.raw.headersSent) collectHeaders(this.raw as ServerResponse, this.headers, this.#exchange.http2);
  }

  /** Forgets what describes the answer that is not sent, wherever and in whatever spelling it was said. */
  dropAnswerHeaders(): void {
    for (const name of Object.keys(this.headers)) {
      if (answerHeaders.has(name.toLowerCase().replaceAll("-", "_"))) delete this.headers[name];
    }
    if (this.#stopCounting === undefined) return;
    for (const name of answerHeaders) this.raw.removeHeader(wireName(name));
  }

  /** Writes the answer. Throws before anything is on the wire when a header or the body cannot be sent. */
  write(body: Body | undefined): void {
    try {
      this.#addDefaults();
      if (this.sink !== undefined) {
        this.sink(body);
        return;
      }
      this.reclaim();
      if (body === undefined || body === null) this.#writeWhole("");
      else if (typeof body === "string" || body instanceof Uint8Array) this.#writeWhole(body);
      else if (isWhole(body) && this.trailers === undefined) this.#writePooled(body);
      else this.#writeStream(body);
    } catch (error) {
      discard(body);
      throw error;
    }
  }

  #addDefaults(): void {
    const option = this.#exchange.defaults?.x_content_type_options;
    if (option !== undefined) addDefault(this.headers, "x_content_type_options", option);
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

  /** A body and its trailers in one write: several cost the half of a small answer. */
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

  /** The connection mostly needs the bytes no more as soon as they are written. */
  #writePooled(body: PooledBody & { readonly whole: Uint8Array }): void {
    const { raw } = this;
    const { whole } = body;
    if (this.#exchange.http2) {
      // HTTP/2 says "finish" of what was reset, too, and may still have the bytes then.
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
    this.#writeHead(fields);
    if (this.is_head_request || bodiless(this.status_code)) {
      discard(source);
      this.#exchange.end();
      return;
    }
    const file = source instanceof ReadStream && length !== undefined ? filePieces(source, Number(length)) : undefined;
    // What an opened file has is there soon, and goes out with the head.
    if (file === undefined) this.#flushHead();
    pump(this.#exchange, file ?? source, length === undefined ? undefined : Number(length))
      .then(() => {
        if (this.#exchange.gone) return;
        if (announced.length > 0 && this.trailers !== undefined) this.#addTrailers();
        this.#exchange.end();
      })
      .catch((error: unknown) => this.#exchange.fail(error));
  }

  #writeHead(fields: string[]): void {
    const { raw } = this;
    if (this.variesByOrigin && !contains_token(String(this.headers.vary ?? ""), "origin"))
      fields.push("Vary", "Origin");
    if (this.#exchange.closing) fields.push("Connection", "close");
    // Set before the host had the request, and replaced by cookies of the app otherwise.
    if (raw.hasHeader("Set-Cookie")) for (const line of cookiesOf(raw)) fields.push("Set-Cookie", line);
    if (this.status !== undefined && !this.#exchange.http2) {
      (raw as ServerResponse).writeHead(this.status_code, this.status.replace(/^\d{3} /, ""), fields);
    } else {
      (raw as ServerResponse).writeHead(this.status_code, fields);
    }
  }

  /** On its way at once; what else is there by then goes along in the same write. */
  #flushHead(): void {
    const raw = this.raw as ServerResponse;
    const socket = this.#exchange.http2 ? null : raw.socket;
    socket?.cork();
    raw.flushHeaders();
    if (socket !== null) process.nextTick(() => socket.uncork());
  }

  /** Those of the trailers themselves, and those of a header `Trailer`, which means nothing where none can follow. */
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
    const trailers = typeof this.trailers === "function" ? this.trailers() : (this.trailers ?? {});
    const fields = wireFields(trailers, this.#exchange.http2);
    const lines: Record<string, string[]> = {};
    for (let at = 0; at < fields.length; at += 2) (lines[fields[at] as string] ??= []).push(fields[at + 1] as string);
    (this.raw as ServerResponse).addTrailers(lines as OutgoingHttpHeaders);
  }
}
