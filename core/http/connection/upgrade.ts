import type { Socket } from "node:net";
import type { HttpRequest, ResponseHeaders } from "../../types.ts";
import { isToken } from "../../util/header_fields.ts";
import type { IncomingMessage, ServerResponse } from "../../util/node_http.ts";
import { WireResponse } from "./wire_response.ts";

/** The pseudo-method of websocket routes. `admit` refuses a request that names it. */
export const websocketMethod = "WS";

/** The version of the protocol, RFC 6455. */
const version = "13";

/** Maximum number of bytes that a client may send before the response to its handshake. */
const MAX_EARLY_BYTES = 64 * 1024;

/**
 * Whether a request asks for a websocket, even with a malformed handshake. A request with a body is
 * served as if it had not asked (RFC 9110, 7.8).
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

/** Why a handshake is refused, as parts of the response. */
export interface HandshakeFault {
  readonly status: number;
  readonly message: string;
  readonly headers: ResponseHeaders;
}

/** The subprotocols that a handshake offers, or why it is refused (RFC 6455, 4.2.1). */
export function readHandshake(request: Pick<HttpRequest, "header">): readonly string[] | HandshakeFault {
  const fault = (message: string) => ({ status: 400, message, headers: {} });
  if (request.header("sec-websocket-version") !== version) {
    const message = `Only version ${version} of the websocket protocol is spoken here`;
    return { status: 426, message, headers: { ...upgradeHeaders, sec_websocket_version: version } };
  }
  // 16 random bytes in base 64.
  if (!/^[+/0-9A-Za-z]{22}==$/.test(request.header("sec-websocket-key") ?? "")) {
    return fault("Missing or invalid Sec-WebSocket-Key header");
  }
  const offered =
    request
      .header("sec-websocket-protocol")
      ?.split(",")
      .map((name) => name.trim()) ?? [];
  const isValid = offered.every(isToken) && new Set(offered).size === offered.length;
  return isValid ? offered : fault("Invalid Sec-WebSocket-Protocol header");
}

/**
 * Headers of a 426. "close" is needed because Node keeps the connection open when `Connection` is
 * set without it.
 */
export const upgradeHeaders: ResponseHeaders = { upgrade: "websocket", connection: "Upgrade, close" };

/**
 * A connection that Node's HTTP server has released. Until other code takes it, one last ordinary
 * response can be written on it. It is read meanwhile, so that a disconnect is noticed.
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
    this.response = new WireResponse(request);
    this.response.shouldKeepAlive = false;
    this.response.assignSocket(socket);
    this.response.on("finish", () => socket.destroySoon());
    socket.on("error", () => undefined);
    socket.on("drain", this.#drained).on("data", this.#early).on("end", this.#left);
  }

  /**
   * Returns the connection, which then belongs to the caller, and the bytes that the client has
   * already sent.
   */
  take(): { socket: Socket; head: Buffer } {
    const socket = this.#socket;
    socket.off("drain", this.#drained).off("data", this.#early).off("end", this.#left).pause();
    return { socket, head: Buffer.concat(this.#pieces) };
  }

  /** Detaches the response for good: the connection now belongs to other code. */
  detach(): void {
    this.response.detachSocket(this.#socket);
  }

  readonly #drained = () => void this.response.emit("drain");

  readonly #early = (piece: Buffer) => {
    this.#bytes += piece.length;
    // A client that sends so much before the response breaks the protocol, so the connection is
    // closed without one.
    if (this.#bytes > MAX_EARLY_BYTES) this.#socket.destroy();
    else this.#pieces.push(piece);
  };

  readonly #left = () => void this.#socket.destroy();
}
