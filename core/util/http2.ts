/**
 * Helpers for HTTP/2 that do not load Node's module for it, which is loaded with the first server
 * that uses it.
 */
import type { Http2ServerRequest } from "node:http2";
import type { NodeRequest } from "./node_messages.ts";

/** Error codes of RFC 9113, section 7. */
export const NO_ERROR = 0;
export const INTERNAL_ERROR = 2;
export const ENHANCE_YOUR_CALM = 11;

/**
 * Maximum size of a header block in bytes; the HTTP/2 library closes the whole connection above it,
 * whatever limit was announced.
 */
export const MAX_HTTP2_HEAD = 65_536;

/**
 * Checks for the stream instead of the version, because a client of HTTP/1 can write `HTTP/2.0`
 * into its first line.
 */
export function isHttp2(request: NodeRequest): request is Http2ServerRequest {
  return "stream" in request;
}
