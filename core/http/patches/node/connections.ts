import type { Server } from "node:http";
import type { Socket } from "node:net";

/**
 * Makes a server enforce the timeout of request heads although it opens no port. Node starts that
 * check when a server listens.
 */
export function watchHeads(server: Server): void {
  server.emit("listening");
}

/** Passes a connection to a server, as if it had come in through a port of that server. */
export function takeConnection(server: Server, socket: Socket): void {
  // Node's parser reports its errors to `socket.server`.
  Object.assign(socket, { server });
  server.emit("connection", socket);
}

/**
 * Lets a server respond to clients that have ended their side of the connection after the request.
 */
export function serveHalfClosed(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true });
}
