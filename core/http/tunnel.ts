/** CONNECT: clients that take this server for a proxy get what it serves itself, and nothing is forwarded anywhere. */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { takeConnection } from "./patches/node/connections.ts";

const ACCEPTED = "HTTP/1.1 200 Connection established\r\n\r\n";

/** Connections that have become a tunnel: one within another has no use. */
const tunnels = new WeakSet<Socket>();

/** From now on requests come through the tunnel. `head` are bytes that the client has sent behind its CONNECT. */
export function openTunnel(server: Server, socket: Socket, head: Buffer): void {
  if (tunnels.has(socket)) {
    socket.destroy();
    return;
  }
  tunnels.add(socket);
  socket.write(ACCEPTED);
  if (head.length > 0) socket.unshift(head);
  takeConnection(server, socket);
}
