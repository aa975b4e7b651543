import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { HttpRequest, HttpResponse, ResponseFields, ResponseHeaders } from "../types.ts";
import { piecesOf } from "../util/body_stream.ts";
import { wireFields, wireName } from "../util/header_fields.ts";
import { contains_token } from "../util/url.ts";
import { EventBody } from "./event_body.ts";
import type { Exchange } from "./exchange.ts";
import { sendFile } from "./send_file.ts";
import { discard, pump } from "./stream.ts";

export type NodeResponse = ServerResponse | Http2ServerResponse;
export type Body = NonNullable<ResponseFields["body"]>;

/** Statuses that carry no body and no length. */
export function bodiless(status: number): boolean {
  return status === 204 || status === 304;
}

async function* only(body: string | Uint8Array): AsyncGenerator<string | Uint8Array, void, undefined> {
  yield body;
}

/** The response as a handler sees it (spec 2), and the one place that writes an answer. */
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
  readonly #exchange: Exchange;
  /** An answer has been given; whatever is returned or sent later is ignored. */
  answered = false;
  /** The answer differs by Origin, whatever else a handler says that it varies by. */
  variesByOrigin = false;
  /** Body bytes handed to the connection. */
  bytes = 0;
  /** Set while others write on `raw`; undoes that. */
  lent: (() => void) | undefined;

  constructor(exchange: Exchange, raw: NodeResponse) {
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
      this.write(body ?? this.body);
    } catch (error) {
      this.#exchange.fail(error);
    }
    return true;
  }

  send_file(source: Parameters<HttpResponse["send_file"]>[0]): true {
    if (this.answered) return true;
    this.answered = true;
    sendFile(this.#exchange, source).catch((error: unknown) => this.#exchange.fail(error));
    return true;
  }

  /** From now on nobody else writes on `raw`; the headers that others have set there are here. */
  reclaim(): void {
    const takeBack = this.lent;
    this.lent = undefined;
    takeBack?.();
  }

  /** Writes the answer. Throws before anything is on the wire when a header or the body cannot be sent. */
  write(body: Body | undefined): void {
    try {
      this.reclaim();
      if (body === undefined || body === null) this.#writeWhole("");
      else if (typeof body === "string" || body instanceof Uint8Array) this.#writeWhole(body);
      else this.#writeStream(body);
    } catch (error) {
      discard(body);
      throw error;
    }
  }

  #writeWhole(body: string | Uint8Array): void {
    if (this.trailers !== undefined && this.#exchange.canTrail) {
      this.#writeStream(only(body));
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

  #writeStream(body: Exclude<Body, string | Uint8Array>): void {
    const source = piecesOf(body);
    if (source === undefined) throw new TypeError(`A response body cannot be a ${typeof body}`);
    if (source instanceof EventBody) source.endWith(this.request.leaving);
    const fields = wireFields(this.headers, this.#exchange.http2);
    const length = this.headers.content_length;
    if (length !== undefined) fields.push("Content-Length", String(length));
    const trailing = length === undefined && this.#exchange.canTrail ? this.#trailerNames() : [];
    if (trailing.length > 0) fields.push("Trailer", trailing.join(", "));
    this.#writeHead(fields);
    if (this.is_head_request || bodiless(this.status_code)) {
      discard(source);
      this.#exchange.end();
      return;
    }
    this.#flushHead();
    pump(this.#exchange, source, length === undefined ? undefined : Number(length))
      .then(() => {
        if (this.#exchange.gone) return;
        if (trailing.length > 0) this.#addTrailers();
        this.#exchange.end();
      })
      .catch((error: unknown) => this.#exchange.fail(error));
  }

  #writeHead(fields: string[]): void {
    const { raw } = this;
    if (this.variesByOrigin && !contains_token(String(this.headers.vary ?? ""), "origin"))
      fields.push("Vary", "Origin");
    if (this.#exchange.closing) fields.push("Connection", "close");
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

  #trailerNames(): string[] {
    const { trailers } = this;
    if (trailers === undefined) return [];
    return (typeof trailers === "function" ? (this.trailer_names ?? []) : Object.keys(trailers)).map(wireName);
  }

  #addTrailers(): void {
    const trailers = typeof this.trailers === "function" ? this.trailers() : (this.trailers ?? {});
    const fields = wireFields(trailers, this.#exchange.http2);
    const lines: Record<string, string[]> = {};
    for (let at = 0; at < fields.length; at += 2) (lines[fields[at] as string] ??= []).push(fields[at + 1] as string);
    (this.raw as ServerResponse).addTrailers(lines as OutgoingHttpHeaders);
  }
}
