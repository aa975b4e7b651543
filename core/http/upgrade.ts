import type { Socket } from "node:net";
import type { RequestHeaders, ResponseHeaders } from "../types.ts";
import { isToken } from "../util/header_fields.ts";
import { type IncomingMessage, ServerResponse } from "../util/node_http.ts";

/** The pseudo-method of routes for websockets. No request has it: `admit` refuses one that says so. */
export const websocketMethod = "WS";

/** The version of the protocol, RFC 6455. */
const version = "13";

/** So many bytes may a client send before its handshake is answered. */
const MAX_EARLY_BYTES = 64 * 1024;

/**
 * True for a request by which a client asks to go on with a websocket, well-formed or not. One with a body is none: it
 * is answered as if it had not asked (RFC 9110, 7.8).
 */
export function wantsWebsocket({ method, httpVersion, headers }: IncomingMessage): boolean {
  return (
    method === "GET" &&
    httpVersion === "1.1" &&
    headers.upgrade?.toLowerCase() === "websocket" &&
    headers["transfer-encoding"] === undefined &&
    Number(headers["content-length"] ?? 0) === 0
  );
}

/** What is wrong with a handshake. */
export interface HandshakeFault {
  readonly status: number;
  readonly message: string;
  readonly headers: ResponseHeaders;
}

/** The subprotocols that a handshake offers, or what is wrong with it (RFC 6455, 4.2.1). */
export function readHandshake(headers: RequestHeaders): readonly string[] | HandshakeFault {
  const fault = (message: string) => ({ status: 400, message, headers: {} });
  if (headers.sec_websocket_version !== version) {
    const message = `Only version ${version} of the websocket protocol is spoken here`;
    return { status: 426, message, headers: { ...upgradeHeaders, sec_websocket_version: version } };
  }
  // 16 random bytes in base 64.
  if (!/^[+/0-9A-Za-z]{22}==$/.test(headers.sec_websocket_key ?? "")) {
    return fault("Missing or invalid Sec-WebSocket-Key header");
  }
  const offered = headers.sec_websocket_protocol?.split(",").map((name) => name.trim()) ?? [];
  const isValid = offered.every(isToken) && new Set(offered).size === offered.length;
  return isValid ? offered : fault("Invalid Sec-WebSocket-Protocol header");
}

/** Headers of a 426. "close" must be said: Node keeps the connection open when `Connection` is set without it. */
export const upgradeHeaders: ResponseHeaders = { upgrade: "websocket", connection: "Upgrade, close" };

/**
 * A connection that Node's HTTP server has released. Until it is taken over, one ordinary answer can be written on it,
 * the last; it is read from meanwhile, so that a client that disconnects is noticed.
 */
export class Handover {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly #socket: Socket;
  readonly #pieces: Buffer[];
  #bytes: number;

  constructor(request: IncomingMessage, socket: Socket, head: Buffer) {
    this.request = request;
    this.#socket = socket;
    this.#pieces = [head];
    this.#bytes = head.length;
    this.response = new ServerResponse(request);
    this.response.shouldKeepAlive = false;
    this.response.assignSocket(socket);
    this.response.on("finish", () => socket.destroySoon());
    socket.on("error", () => undefined);
    socket.on("drain", this.#drained).on("data", this.#early).on("end", this.#left);
  }

  /** The connection, for whoever speaks on it from here on, and what the client has sent already. */
  take(): { socket: Socket; head: Buffer } {
    const socket = this.#socket;
    socket.off("drain", this.#drained).off("data", this.#early).off("end", this.#left).pause();
    return { socket, head: Buffer.concat(this.#pieces) };
  }

  /** The connection has been taken for good: no answer can be written any more. */
  detach(): void {
    this.response.detachSocket(this.#socket);
  }

  readonly #drained = () => void this.response.emit("drain");

  readonly #early = (piece: Buffer) => {
    this.#bytes += piece.length;
    // Sending before the answer breaks the protocol: the connection is closed without one.
    if (this.#bytes > MAX_EARLY_BYTES) this.#socket.destroy();
    else this.#pieces.push(piece);
  };

  readonly #left = () => void this.#socket.destroy();
}
