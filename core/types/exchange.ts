/** The event of one request: request, response and connection (spec 3 and 4). */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import type { ResponseFields, ResponseHeaders } from "./answer.ts";
import type { PresentedToken } from "./presented_token.ts";

/** What every handler is called with. */
export interface HttpEvent {
  /** What the client sent. */
  readonly request: HttpRequest;
  /** How the handler replies, where it does not simply return its answer. */
  readonly response: HttpResponse;
}

/** Lower-case names with `_` for `-`; repeated fields joined with ", " (cookies with "; "). */
export type RequestHeaders = Readonly<Record<string, string | undefined>>;

/** The target of a request. */
export interface HttpUrl {
  /** Decoded path, app base included; the same as `request.path`. */
  readonly path: string;
  /** The path as it was sent. */
  readonly raw_path: string;
  /** What follows the first `?`; undefined when absent or empty. */
  readonly query: string | undefined;
  /** Of an absolute request target only. */
  readonly host: string | undefined;
  /** The same: `http` or `https`. */
  readonly scheme: string | undefined;
}

/** `event.request`. */
export interface HttpRequest {
  /** `content_type`, `content_length`, `host`, ... */
  readonly headers: RequestHeaders;
  /** As sent: `GET`, `POST`, ... */
  readonly method: string;
  /** Decoded, with the base path of the app, without query. */
  readonly path: string;
  /** The target taken apart; its `query` is here. */
  readonly url: HttpUrl;
  /** The raw body as UTF-8 text, "" when none was sent. */
  readonly body: string;
  /** The raw body. */
  readonly body_bytes: Buffer;
  /**
   * The body as JSON, whatever the request says about its type. Text that is no JSON, or no UTF-8, is answered 400, and
   * a body of more than `max_bytes` 413: the promise is rejected with BODY_NOT_JSON or BODY_TOO_LARGE. The value is
   * what the client sent: check it before you rely on its form.
   */
  json<T = unknown>(limits?: JsonLimits): Promise<T>;
  /** With `streaming_uploads`: the body as it arrives, for one reader. Otherwise the buffered body, once. */
  readonly body_stream: AsyncIterable<Buffer>;
  /** The parts of a multipart body, one after the other, read as they arrive; nothing touches the disk. */
  parts(limits?: MultipartLimits): AsyncIterable<MultipartPart>;
  /** The connection that it came on. */
  readonly conn: Connection;
  /** True when the client's connection is encrypted (as a trusted proxy tells, where there is one). */
  readonly secure: boolean;
  /** The client's address; behind trusted proxies the one they report. */
  readonly ip: string;
  /**
   * Short and unique in this process, or the `X-Request-Id` that one of `trusted_proxies` sent; also in the log, in error
   * pages and in traces.
   */
  readonly id: string;
  /** The token that let it in, where one was asked for: `request.token?.name`. */
  readonly token: PresentedToken | undefined;
  /** Host and port that the client asked for, as one of `trusted_proxies` tells; undefined where none does. */
  readonly forwarded_host: string | undefined;
  /** One of `trusted_proxies` sent the request: its headers can be believed. */
  readonly from_proxy: boolean;
  /** `1.0`, `1.1` or `2.0`. */
  readonly httpversion: string;
  /** The virtual host that serves the request; "*" when `hosts` is not set. */
  readonly host: string;
  /** Aborted when the client goes away before the answer is complete, or when its module leaves and the time for that is up. */
  readonly signal: AbortSignal;
  /** Aborted when the module is about to leave (unload, reload, stop of the server): end what has no end of its own. */
  readonly leaving: AbortSignal;
  /** Node's own object. */
  readonly raw: IncomingMessage | Http2ServerRequest;
}

/** What `request.json` refuses beyond. */
export interface JsonLimits {
  /** Bytes of the body; default 1 MiB. `http_max_content_size` holds, too, unless the app has `streaming_uploads`. */
  readonly max_bytes?: number;
}

/** What `request.parts` refuses beyond. */
export interface MultipartLimits {
  /** Bytes of one part's body; default: no limit beyond the request's. */
  readonly part_bytes?: number;
  /** Number of parts; default 1,000. */
  readonly parts?: number;
  /** Bytes of one part's header; default 16 KiB. */
  readonly header_bytes?: number;
}

/** One part of a multipart body. */
export interface MultipartPart {
  /** Field name, from Content-Disposition. */
  readonly name: string | undefined;
  /** File name as it was sent (backslashes and folders included). */
  readonly filename: string | undefined;
  /** The part's own. */
  readonly headers: RequestHeaders;
  /** The part's bytes; skipped automatically when the next part is asked for. */
  readonly body: AsyncIterable<Buffer>;
  /**
   * The same, but each piece is valid until the next one is asked for: the quickest way for who copies, hashes or counts. A piece
   * that is kept holds other bytes later, maybe those of another request: keep `Buffer.from(piece)`.
   */
  readonly passing: AsyncIterable<Buffer>;
  /** The rest of the body as UTF-8 text. */
  text(): Promise<string>;
  /** The rest of the body. */
  bytes(): Promise<Buffer>;
}

/** `event.request.conn`. */
export interface Connection {
  /** Address of the peer, be it a proxy: `request.ip` is the client's. */
  ip(): string;
  /** Port of the peer. */
  clientport(): number;
  /** Port of the host. */
  serverport(): number;
  /** True when this connection is encrypted. */
  ssl(): boolean;
  /** Ends the connection at once. */
  close(): void;
  /** Node's own object. */
  readonly socket: Socket;
}

/** `event.response`. */
export interface HttpResponse {
  /** Default 200. */
  status_code: number;
  /** `content_type`, ...; none but Content-Length is set by itself. */
  headers: ResponseHeaders;
  /** What `send` sends when it is called without a body. */
  body: ResponseFields["body"] | undefined;
  /** Sent after the body and announced by the Trailer header. A function is called at the end. */
  trailers: ResponseHeaders | (() => ResponseHeaders) | undefined;
  /** Names announced in the Trailer header when `trailers` is a function. */
  trailer_names: readonly string[] | undefined;
  /** Called once: the answer is complete, or the client went away first. */
  on_destroy: (() => void) | undefined;
  /** The answer is complete. */
  readonly finished: boolean;
  /** Status and headers are on their way: changes come too late. */
  readonly headers_sent: boolean;
  /** The body that is sent is left out. */
  readonly is_head_request: boolean;
  /** Sends the answer; `body` replaces `response.body`. A second call does nothing. Returns true. */
  send(body?: ResponseFields["body"] | undefined): true;
  /** Sends a file (with ranges, when a path is given), an open file handle or a readable stream. Returns true. */
  send_file(source: string | Readable | { fd: number; createReadStream(): Readable }): true;
  readonly request: HttpRequest;
  readonly raw: ServerResponse | Http2ServerResponse;
}
