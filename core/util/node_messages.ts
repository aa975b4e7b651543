import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** Node's own request and response objects, of either version of HTTP. */
export type NodeRequest = IncomingMessage | Http2ServerRequest;
export type NodeResponse = ServerResponse | Http2ServerResponse;

/**
 * Returns true if the client has disconnected during this response, but `close` was not emitted
 * yet. A body that Koa then destroys has not failed, because nobody waits for it.
 */
export function isAbandoned(response: NodeResponse): boolean {
  if (response.writableEnded) return false;
  return ("stream" in response && response.stream.closed) || response.socket?.writable === false;
}
