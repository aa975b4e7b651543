/**
 * Closes HTTP/1 connections while their server stops: after their current response, or after a
 * short wait when no request has begun.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { connectionBelow } from "../patches/node/bytes_taken.ts";

/**
 * Milliseconds for which a stopping server waits for the first request of a new connection: a
 * client whose request is on its way cannot know that the server stops. Browsers open some
 * connections that they may never use.
 */
const FIRST_REQUEST_MS = 500;

export class LastRequests {
  readonly #sockets: Iterable<Socket>;
  readonly #responseOf: (socket: Socket) => ServerResponse | undefined;
  /** For each connection with TLS, the decrypted one; undefined until its handshake is over. */
  readonly #decrypted = new WeakMap<Socket, Socket | undefined>();

  /**
   * `sockets`: the open connections of the server. `responseOf` returns the response that is being
   * sent on a connection.
   */
  constructor(sockets: Iterable<Socket>, responseOf: (socket: Socket) => ServerResponse | undefined) {
    this.#sockets = sockets;
    this.#responseOf = responseOf;
  }

  /** Notes that the connection begins with a TLS handshake. */
  encrypted(socket: Socket): void {
    this.#decrypted.set(socket, undefined);
  }

  /** Notes that the handshake is over. */
  decrypted(secured: Socket): void {
    const below = connectionBelow(secured);
    if (below !== undefined) this.#decrypted.set(below, secured);
  }

  close(): void {
    this.#closeAfterResponse();
    setTimeout(() => this.#closeUnused(), FIRST_REQUEST_MS).unref();
  }

  /**
   * Closes connections after their current response, which may have begun without
   * `Connection: close`.
   */
  #closeAfterResponse(): void {
    for (const socket of this.#sockets) {
      const served = this.#served(socket);
      if (served === undefined) continue;
      const close = () => {
        // A further request that has already arrived still gets its response, which ends the
        // connection.
        if (this.#responseOf(served) === undefined) served.destroySoon();
      };
      this.#responseOf(served)?.once("close", close);
    }
  }

  /** Returns the sockets, decrypted if there is TLS, on which no request has begun. */
  unused(): Socket[] {
    return [...this.#sockets]
      .map((socket) => this.#served(socket) ?? socket)
      .filter(({ bytesRead }) => bytesRead === 0);
  }

  /** Closes the connections on which no request has begun. */
  #closeUnused(): void {
    for (const socket of this.#sockets) if ((this.#served(socket)?.bytesRead ?? 0) === 0) socket.destroy();
  }

  /** The socket that requests arrive on; undefined until the TLS handshake is over. */
  #served(socket: Socket): Socket | undefined {
    return this.#decrypted.has(socket) ? this.#decrypted.get(socket) : socket;
  }
}
