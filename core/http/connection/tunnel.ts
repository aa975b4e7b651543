/**
 * Accepts CONNECT from clients that use this server as a proxy. They reach only what this server
 * serves; nothing is forwarded.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { takeConnection } from "../patches/node/connections.ts";

const ACCEPTED = "HTTP/1.1 200 Connection established\r\n\r\n";

/** Connections that are tunnels. A tunnel inside a tunnel is refused. */
const tunnels = new WeakSet<Socket>();

/**
 * Opens the tunnel, through which further requests arrive. `head`: bytes that the client sent after
 * its CONNECT.
 */
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
