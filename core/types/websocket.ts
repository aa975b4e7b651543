/** Websockets (RFC 6455): what handlers of routes with the method `WS` work with. */
import type { Socket } from "node:net";
import type { HttpEvent } from "./exchange.ts";

/** A message: text, or bytes. */
export type WebSocketMessage = string | Buffer;

/**
 * The event of a request for a websocket. `request.signal` is aborted when the connection is over.
 */
export interface WebSocketEvent extends HttpEvent {
  /** Subprotocols that the client offers, in its order. */
  readonly protocols: readonly string[];
  /**
   * Sends 101 with the headers set on the response, and returns the connection.
   * @throws {ModhostError} WEBSOCKET_INVALID when a response has been sent already, or the protocol
   * was not offered; WEBSOCKET_CLOSED when the client has left
   */
  accept(options?: WebSocketAccept): WebSocketConnection;
  /**
   * Returns the raw connection, for code that forwards the bytes of both sides: the caller writes
   * the 101, and `head` is what the client has sent already. The request lasts until the socket
   * closes; its `signal` and `leaving` work as usual, and the host does not ping the client. It
   * disconnects a client that leaves bytes unread for `http_progress_timeout`.
   * @throws {ModhostError} as `accept`
   */
  tunnel(): WebSocketTunnel;
}

/** The paused connection of a client that requests a websocket. */
export interface WebSocketTunnel {
  readonly socket: Socket;
  readonly head: Buffer;
}

export interface WebSocketAccept {
  /**
   * A protocol from `event.protocols`. Default: the first of the provider's `websocket.protocols`
   * that the client offers.
   */
  readonly protocol?: string;
}

/**
 * An open websocket. It stays open when the handler ends, until either side closes it or the module
 * is unloaded (1001; 1012 on a reload). The host pings it, and disconnects a client that is silent
 * or does not read.
 */
export interface WebSocketConnection extends AsyncIterable<WebSocketMessage> {
  /** The negotiated subprotocol; "" without one. */
  readonly protocol: string;
  /** Whether messages can be sent. */
  readonly open: boolean;
  /**
   * Resolves when the connection has closed; never rejects. It is a promise, as in `WebTransport`;
   * the flag is `open`.
   */
  readonly closed: Promise<WebSocketClosed>;
  /**
   * Sends text, or bytes as a binary message. Resolves when the client keeps up, so a sender that
   * awaits it sends no faster than the client reads; a sender that does not may ignore a failure.
   * Bytes must not be changed before that. Rejects with WEBSOCKET_CLOSED when the connection has
   * closed, or when `http_websocket_max_unsent` is exceeded, which closes it.
   */
  send(message: string | Uint8Array): Promise<void>;
  /**
   * Resolves to the next message; undefined when no more will come.
   * `for await (const message of socket)` does the same, and may be left and started again. The
   * host does not read from the client while messages wait to be received. If the handler has ended
   * without receiving any, they are dropped.
   */
  receive(): Promise<WebSocketMessage | undefined>;
  /**
   * Closes the connection; messages that have not been received are dropped. A client that does not
   * confirm within `http_websocket_close_timeout` is disconnected.
   * @throws {TypeError | RangeError} for a code that may not be sent (1000 to 1014 of the standard,
   * 3000 to 4999), or a reason of more than 123 bytes
   */
  close(code?: number, reason?: string): Promise<WebSocketClosed>;
}

/**
 * How a connection ended: the code and reason of the closing side. The host closes it if a client
 * breaks the rules (1009 for a message that is too large). 1005: the closing side sent no code.
 * 1006: the connection was lost.
 */
export interface WebSocketClosed {
  readonly code: number;
  readonly reason: string;
}

/** The rules of an app for its websockets. */
export interface WebSocketSettings {
  /**
   * Origins of pages that may connect, in addition to those of this server and those that
   * `cors.origins` names; "*" is any. A request without Origin does not come from a page, and is
   * allowed.
   */
  readonly origins?: readonly string[] | "*";
  /** Subprotocols that the app supports, the preferred one first. */
  readonly protocols?: readonly string[];
  /**
   * Maximum size of a message from a client (1009 beyond it). Default: the option
   * `http_websocket_max_message_size`.
   */
  readonly max_message_bytes?: number;
  /**
   * Whether to offer compression (permessage-deflate). It costs memory for each connection, and up
   * to 16 MiB more while messages wait to be received, because a small message may unpack to a
   * large one; a client that sends more than that is disconnected. Default false.
   */
  readonly compression?: boolean;
}
