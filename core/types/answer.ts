/** What handlers may answer (contract, part 4). */
import type { Readable } from "node:stream";

/**
 * string: the body. number: the status, with the error page from 400 on. true: `response.send` comes later.
 * undefined or null: the next matching handler. false: 200 and nothing. Bytes, streams and async iterables: the body.
 */
export type HandlerResult =
  | string
  | number
  | boolean
  | null
  | undefined
  | Uint8Array
  | Readable
  | ReadableStream
  | AsyncIterable<string | Uint8Array>
  | PooledBody
  | ResponseFields;

/**
 * A body that takes its pieces back, to use their memory again. `release` is called once for each piece of bytes that
 * the connection needs no longer, sent or not; until then the piece stays as it is. It may be called after the
 * iteration has ended, and it is not called where a connection was lost before it took the piece.
 */
export interface PooledBody extends AsyncIterable<string | Uint8Array> {
  /** All of the body, where it is one piece that is at hand: it may be sent with the head, without an iteration. */
  readonly whole?: Uint8Array;
  /** Takes it back. */
  release(piece: Uint8Array): void;
}

/** An answer as an object: `headers` are merged into the response, these other fields are copied onto it. */
export interface ResponseFields {
  status_code?: number;
  /** A reason phrase of its own, for HTTP/1. */
  status?: string;
  headers?: ResponseHeaders;
  body?: string | Uint8Array | Readable | ReadableStream | AsyncIterable<string | Uint8Array> | PooledBody;
  trailers?: ResponseHeaders | (() => ResponseHeaders);
}

/** How an answer of `text` or `json` differs from the usual one. */
export interface ReplyOptions {
  /** Default 200. */
  readonly status_code?: number;
  /** Further headers; one that the answer has already replaces it. */
  readonly headers?: ResponseHeaders;
}

/** An answer that html`...` made. Within another html`...` its body goes in as it is. */
export interface HtmlAnswer extends ResponseFields {
  readonly status_code: number;
  readonly headers: ResponseHeaders;
  readonly body: string;
}

/** Names are written with `-` for `_`; a list is one field line per value. */
export type ResponseHeaders = Record<string, string | number | readonly string[] | undefined>;
