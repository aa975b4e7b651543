import type { Server } from "node:http";
import type { Socket } from "node:net";

/** Has a server watch the time that request heads take, though it opens no port: Node begins with that when it listens. */
export function watchHeads(server: Server): void {
  server.emit("listening");
}

/** Gives a connection to a server, as if it had come in through a port of that server. */
export function takeConnection(server: Server, socket: Socket): void {
  // Node's parser tells its errors to the server that the socket names.
  Object.assign(socket, { server });
  server.emit("connection", socket);
}
