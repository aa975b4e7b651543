import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** Node's own objects, of either version of HTTP. */
export type NodeRequest = IncomingMessage | Http2ServerRequest;
export type NodeResponse = ServerResponse | Http2ServerResponse;

/**
 * The client has left in the middle of this answer, and `close` is still to be emitted. What Koa then destroys, a body
 * that nobody waits for, has not failed.
 */
export function isAbandoned(response: NodeResponse): boolean {
  if (response.writableEnded) return false;
  return "stream" in response ? response.stream.closed : response.socket?.writable === false;
}
