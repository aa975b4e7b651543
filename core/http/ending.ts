import type { ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { NO_ERROR } from "./http2.ts";
import type { NodeRequest, NodeResponse } from "./node_messages.ts";

/** The exchange whose answer ends. */
interface Ending {
  readonly http2: boolean;
  /** The connection is closed after this answer. */
  readonly closing: boolean;
  /** The request has a body that nobody has read. */
  readonly hasBody: boolean;
  readonly request: {
    readonly raw: NodeRequest;
    readonly incoming: { linger(how: "patiently" | "briefly"): Promise<void> };
  };
  readonly response: { readonly raw: NodeResponse; delivered: boolean };
}

/** Sends the last bytes; a body that the client is still sending is first taken in, within bounds. */
export function endAnswer(exchange: Ending, data: string | Uint8Array | undefined): void {
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
    // The answer does not wait for the last bytes of a body that was read: the connection does.
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
    // A connection that is closed with something unread is reset, and the answer is lost on its way to a slow client.
    if (!request.raw.complete) socket.destroySoon = () => socket.end();
    raw.end();
    if (!request.raw.complete) incoming.linger("patiently").then(() => socket.destroy());
  });
}
