/** The values that handlers may return (contract, part 4). */
import type { Readable } from "node:stream";

/**
 * The value that a handler returns.
 * - string, bytes, stream or async iterable: the body.
 * - number: the status, with the error page from 400 on.
 * - true: the handler calls `response.send` later.
 * - undefined or null: the next matching handler gets the request.
 * - false: 200 with an empty body.
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
 * A body whose memory is reused: `release` returns each piece to its owner. It is called once for
 * each piece of bytes that the connection no longer needs, sent or not; until then the piece must
 * not change. It may be called after the iteration has ended. It is not called for a piece that a
 * lost connection never took.
 */
export interface PooledBody extends AsyncIterable<string | Uint8Array> {
  /**
   * The whole body, if it is one piece that is in memory: the host may then send it together with
   * the head, without an iteration.
   */
  readonly whole?: Uint8Array;
  /** Returns the memory of a piece. */
  release(piece: Uint8Array): void;
}

/**
 * A response as an object: `headers` are merged into the response, the other fields are copied onto
 * it.
 */
export interface ResponseFields {
  status_code?: number;
  /** A reason phrase of its own, for HTTP/1. */
  status?: string;
  headers?: ResponseHeaders;
  body?: string | Uint8Array | Readable | ReadableStream | AsyncIterable<string | Uint8Array> | PooledBody;
  trailers?: ResponseHeaders | (() => ResponseHeaders);
}

/** The status and headers of a response made by `text` or `json`. */
export interface ReplyOptions {
  /** Default 200. */
  readonly status_code?: number;
  /** Additional headers. A header that the response sets already replaces the one given here. */
  readonly headers?: ResponseHeaders;
}

/** A response made by html`...`. Inside another html`...` its body is inserted without escaping. */
export interface HtmlResult extends ResponseFields {
  readonly status_code: number;
  readonly headers: ResponseHeaders;
  readonly body: string;
}

/** Names use `_` for `-`; a list becomes one field line per value. */
export type ResponseHeaders = Record<string, string | number | readonly string[] | undefined>;
