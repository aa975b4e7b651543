/** Websockets (RFC 6455): what handlers of routes with the method `WS` work with. */
import type { Socket } from "node:net";
import type { HttpEvent } from "./exchange.ts";

/** A message: text, or bytes. */
export type WebSocketMessage = string | Buffer;

/** The event of a request for a websocket. `request.signal` is aborted when the connection is over. */
export interface WebSocketEvent extends HttpEvent {
  /** Subprotocols that the client offers, in its order. */
  readonly protocols: readonly string[];
  /**
   * Answers 101 with the headers set on the response, and gives the connection.
   * @throws {ModhostError} WEBSOCKET_INVALID when the request has been answered, or the protocol was not offered;
   * WEBSOCKET_CLOSED when the client has left
   */
  accept(options?: WebSocketAccept): WebSocketConnection;
  /**
   * Gives the connection itself, for whoever carries the bytes of both sides on: the 101 is written by the caller, and
   * `head` is what the client has sent already. The request lasts until the socket closes; its `signal` and `leaving`
   * tell as ever, and nothing pings the client.
   * @throws {ModhostError} as `accept`
   */
  tunnel(): WebSocketTunnel;
}

/** The connection of a client that asks for a websocket, paused. */
export interface WebSocketTunnel {
  readonly socket: Socket;
  readonly head: Buffer;
}

export interface WebSocketAccept {
  /** One of `event.protocols`. Default: the first of the provider's `websocket.protocols` that the client offers. */
  readonly protocol?: string;
}

/**
 * An open websocket. It stays open when the handler ends, until either side closes it or the module leaves (1001;
 * 1012 on a reload). The host pings it, and cuts a client that is silent or does not read.
 */
export interface WebSocketConnection extends AsyncIterable<WebSocketMessage> {
  /** The subprotocol agreed upon; "" without one. */
  readonly protocol: string;
  /** Messages can be sent. */
  readonly open: boolean;
  /** Resolves when the connection is over; never rejects. A promise as that of `WebTransport`: the flag is `open`. */
  readonly closed: Promise<WebSocketClosed>;
  /**
   * Sends text, or bytes as a binary message. Resolves when the client keeps up, so that a sender who waits goes no
   * faster than it reads; who does not wait may ignore a failure. Bytes must not be changed before that.
   * Rejects with WEBSOCKET_CLOSED when the connection is over, or `http_websocket_max_unsent` is exceeded, which
   * ends it.
   */
  send(message: string | Uint8Array): Promise<void>;
  /**
   * The next message; undefined when no more will come. `for await (const message of socket)` does the same, and may
   * be left and begun again. The client is not read from while messages wait to be taken; once the handler has ended
   * without ever asking for one, they are thrown away.
   */
  receive(): Promise<WebSocketMessage | undefined>;
  /**
   * Closes the connection; messages that have not been taken are dropped. A client that does not agree within
   * `http_websocket_close_timeout` is cut off.
   * @throws {TypeError | RangeError} for a code that may not be sent (1000 to 1014 of the standard, 3000 to 4999), or a
   * reason of more than 123 bytes
   */
  close(code?: number, reason?: string): Promise<WebSocketClosed>;
}

/**
 * How a connection ended: as the closing side says, be it the host, to a client that broke the rules (1009 for a message
 * that is too large); 1005 when it says nothing, 1006 when it was cut.
 */
export interface WebSocketClosed {
  readonly code: number;
  readonly reason: string;
}

/** The rules of an app for its websockets. */
export interface WebSocketSettings {
  /**
   * Origins of pages that may connect, beside those of this server and those that `cors.origins` names; "*" is any.
   * A request without Origin comes from no page, and is let in.
   */
  readonly origins?: readonly string[] | "*";
  /** Subprotocols that the app speaks, the best first. */
  readonly protocols?: readonly string[];
  /** Largest message taken from a client (1009 beyond it). Default: the option `http_websocket_max_message_size`. */
  readonly max_message_bytes?: number;
  /**
   * Offer compression (permessage-deflate): costs memory for each connection, and up to 16 MiB more while messages wait
   * to be taken, as little may unpack to much; a client that sends more than that is cut. Default false.
   */
  readonly compression?: boolean;
}
