/**
 * Creates Node's message objects for a request that its parser refuses: only the connection is
 * known.
 */
import type { Socket } from "node:net";
import { IncomingMessage, type ServerResponse } from "../../util/node_http.ts";
import { WireResponse } from "./wire_response.ts";

/** The request log writes this text for unknown values. */
export const UNKNOWN = "-";

export function unparsedMessages(socket: Socket): { request: IncomingMessage; response: ServerResponse } {
  const request = new IncomingMessage(socket);
  const version = { httpVersion: "1.1", httpVersionMajor: 1, httpVersionMinor: 1 };
  Object.assign(request, { method: UNKNOWN, url: UNKNOWN, ...version, complete: true });
  const response = new WireResponse(request);
  response.shouldKeepAlive = false;
  return { request, response };
}
