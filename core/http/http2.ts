/** What is asked of HTTP/2, without Node's part for it: that is loaded with the first server that speaks it. */
import type { Http2ServerRequest } from "node:http2";
import type { NodeRequest } from "./node_messages.ts";

/** Codes of errors: RFC 9113, section 7. */
export const NO_ERROR = 0;
export const INTERNAL_ERROR = 2;
export const ENHANCE_YOUR_CALM = 11;

/** Asks for the stream, not for the version: a client of HTTP/1 can write `HTTP/2.0` into its first line. */
export function isHttp2(request: NodeRequest): request is Http2ServerRequest {
  return "stream" in request;
}
