import type { ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { NO_ERROR } from "../../util/http2.ts";
import type { NodeRequest, NodeResponse } from "../../util/node_messages.ts";

/** The exchange whose response ends. */
interface Ending {
  readonly http2: boolean;
  /** The connection is closed after this response. */
  readonly closing: boolean;
  /** The request has a body that nobody has read. */
  readonly hasBody: boolean;
  readonly request: {
    readonly raw: NodeRequest;
    readonly incoming: { linger(how: "patiently" | "briefly"): Promise<void> };
  };
  readonly response: { readonly raw: NodeResponse; delivered: boolean };
}

/**
 * Sends the last bytes of the response, and reads and drops the rest of the request body within
 * limits.
 */
export function endResponse(exchange: Ending, data: string | Uint8Array | undefined): void {
  const { request, response } = exchange;
  const raw = response.raw as ServerResponse;
  if (!exchange.hasBody || request.raw.complete) {
    if (data === undefined) raw.end();
    else raw.end(data);
    return;
  }
  const { incoming } = request;
  if (exchange.http2) {
    (raw as unknown as Http2ServerResponse).end(data as string);
    incoming.linger("patiently").then(() => {
      const { stream } = request.raw as Http2ServerRequest;
      if (!request.raw.complete) stream.close(NO_ERROR);
    });
    return;
  }
  const { socket } = request.raw;
  if (!exchange.closing && raw.shouldKeepAlive) {
    // The response is sent at once. Only the next request of the connection waits for the rest of
    // this body.
    if (data === undefined) raw.end();
    else raw.end(data);
    incoming.linger("patiently").then(() => {
      if (!request.raw.complete) socket.destroySoon();
    });
    return;
  }
  if (data === undefined) raw.flushHeaders();
  else {
    raw.write(data, (error) => {
      response.delivered = !error;
    });
  }
  incoming.linger("briefly").then(() => {
    // Closing a connection with unread bytes resets it, and a slow client loses the response.
    if (!request.raw.complete) socket.destroySoon = () => socket.end();
    raw.end();
    if (!request.raw.complete) incoming.linger("patiently").then(() => socket.destroy());
  });
}
