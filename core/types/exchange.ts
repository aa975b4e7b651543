/** The event of one request: request, response and connection (spec 3 and 4). */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import type { ResponseFields, ResponseHeaders } from "./handler_result.ts";
import type { PresentedToken } from "./presented_token.ts";

/** The argument of every handler. */
export interface HttpEvent {
  /** The request of the client. */
  readonly request: HttpRequest;
  /** The response, for handlers that do not simply return a result. */
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
  /** The part after the first `?`; undefined if it is missing or empty. */
  readonly query: string | undefined;
  /** Only for an absolute request target. */
  readonly host: string | undefined;
  /** Only for an absolute request target: `http` or `https`. */
  readonly scheme: string | undefined;
}

/** The type of `event.request`. */
export interface HttpRequest {
  /**
   * `content_type`, `content_length`, `host`, ... Several spellings share an entry: a header
   * `Content_Type` also sets `content_type`.
   */
  readonly headers: RequestHeaders;
  /**
   * Returns the value of the header with exactly this name, in any case: `header("Content-Length")`
   * ignores a header `Content_Length`, while `headers` treats both as one. Use it for decisions
   * that a client must not influence by another spelling. Repeated lines are joined with ", "
   * (cookies with "; "); over HTTP/2 `host` is `:authority`.
   */
  header(name: string): string | undefined;
  /** As sent: `GET`, `POST`, ... */
  readonly method: string;
  /** Decoded, with the base path of the app, without query. */
  readonly path: string;
  /** The parts of the request target, including its `query`. */
  readonly url: HttpUrl;
  /** The raw body as UTF-8 text, "" when none was sent. */
  readonly body: string;
  /** The raw body. */
  readonly body_bytes: Buffer;
  /**
   * Parses the body as JSON, whatever content type the request declares. Rejects with BODY_NOT_JSON
   * (400) for text that is not JSON or not UTF-8, and with BODY_TOO_LARGE (413) for a body of more
   * than `max_bytes`. The client chose the value: check its form before you use it.
   */
  json<T = unknown>(limits?: JsonLimits): Promise<T>;
  /**
   * With `streaming_uploads`: the body as it arrives, for one reader. Otherwise the buffered body,
   * once.
   */
  readonly body_stream: AsyncIterable<Buffer>;
  /** The parts of a multipart body in order, read as they arrive; nothing is written to disk. */
  parts(limits?: MultipartLimits): AsyncIterable<MultipartPart>;
  /** The connection of the request. */
  readonly conn: Connection;
  /**
   * True if the client's connection is encrypted; behind a trusted proxy, as the proxy reports it.
   */
  readonly secure: boolean;
  /** The client's address; behind trusted proxies the one they report. */
  readonly ip: string;
  /**
   * Short and unique in this process, or the `X-Request-Id` that one of `trusted_proxies` sent.
   * Logs, error pages and traces show it.
   */
  readonly id: string;
  /** The token that gave access, if the app requires one: `request.token?.name`. */
  readonly token: PresentedToken | undefined;
  /**
   * Host and port that the client requested, as one of `trusted_proxies` reports them; undefined if
   * none does.
   */
  readonly forwarded_host: string | undefined;
  /** True if one of `trusted_proxies` sent the request, so its headers can be trusted. */
  readonly from_proxy: boolean;
  /** `1.0`, `1.1` or `2.0`. */
  readonly httpversion: string;
  /** The virtual host that serves the request; "*" when `hosts` is not set. */
  readonly host: string;
  /**
   * Aborted when the client disconnects before the response is complete, or when the module is
   * unloaded and the time that requests have for it is over.
   */
  readonly signal: AbortSignal;
  /**
   * Aborted when the module is about to be unloaded (unload, reload, server stop): end work that
   * would never end by itself.
   */
  readonly leaving: AbortSignal;
  /** Node's own object. */
  readonly raw: IncomingMessage | Http2ServerRequest;
}

/** Limits of `request.json`. */
export interface JsonLimits {
  /**
   * Maximum size of the body in bytes; default 1 MiB. `http_max_content_size` applies as well,
   * unless the app has `streaming_uploads`.
   */
  readonly max_bytes?: number;
}

/** Limits of `request.parts`. */
export interface MultipartLimits {
  /** Maximum size of one part's body in bytes; default: only the limit of the request. */
  readonly part_bytes?: number;
  /** Maximum number of parts; default 1,000. */
  readonly parts?: number;
  /** Maximum size of one part's header in bytes; default 16 KiB. */
  readonly header_bytes?: number;
}

/** One part of a multipart body. */
export interface MultipartPart {
  /** Field name, from Content-Disposition. */
  readonly name: string | undefined;
  /** File name as it was sent (backslashes and folders included). */
  readonly filename: string | undefined;
  /** The headers of this part. */
  readonly headers: RequestHeaders;
  /** The bytes of the part; they are skipped when the next part is requested. */
  readonly body: AsyncIterable<Buffer>;
  /**
   * The same bytes, but each piece is valid only until the next one is requested. This is the
   * fastest form for code that copies, hashes or counts. A piece that you keep will later contain
   * other bytes, perhaps of another request: keep `Buffer.from(piece)` instead.
   */
  readonly passing: AsyncIterable<Buffer>;
  /** The rest of the body as UTF-8 text. */
  text(): Promise<string>;
  /** The rest of the body. */
  bytes(): Promise<Buffer>;
}

/** The type of `event.request.conn`. */
export interface Connection {
  /** Address of the peer, which may be a proxy; `request.ip` is the client's. */
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

/** The type of `event.response`. */
export interface HttpResponse {
  /** Default 200. */
  status_code: number;
  /** `content_type`, ...; the host sets only Content-Length by itself. */
  headers: ResponseHeaders;
  /** The body that `send` uses when it is called without one. */
  body: ResponseFields["body"] | undefined;
  /** Sent after the body and announced by the Trailer header. A function is called at the end. */
  trailers: ResponseHeaders | (() => ResponseHeaders) | undefined;
  /** Names announced in the Trailer header when `trailers` is a function. */
  trailer_names: readonly string[] | undefined;
  /** Called once: when the response is complete, or when the client disconnects before that. */
  on_destroy: (() => void) | undefined;
  /** Whether the response is complete. */
  readonly finished: boolean;
  /** Whether status and headers have been sent: later changes have no effect. */
  readonly headers_sent: boolean;
  /** Whether this is a HEAD request, for which the body is left out. */
  readonly is_head_request: boolean;
  /**
   * Sends the response; `body` replaces `response.body`. A second call does nothing. Returns true.
   */
  send(body?: ResponseFields["body"] | undefined): true;
  /**
   * Sends a file by path (with ranges), an open file handle, or a readable stream. Returns true.
   */
  send_file(source: string | Readable | { fd: number; createReadStream(): Readable }): true;
  readonly request: HttpRequest;
  readonly raw: ServerResponse | Http2ServerResponse;
}
