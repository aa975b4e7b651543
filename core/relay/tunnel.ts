/** Connections that have switched to another protocol: bytes are carried both ways. */
import type { Socket } from "node:net";
import { carry } from "./carry.ts";

/**
 * A connection that speaks another protocol from now on, and the bytes that have been read from it.
 */
export interface Tunnel {
  readonly socket: Socket;
  readonly head: Buffer;
}

/**
 * Joins the connections of a client and of a server that has accepted the upgrade. `fields` are the
 * header fields of its response.
 */
export function joinTunnels(client: Tunnel, server: Tunnel, fields: readonly string[]): void {
  const lines = ["HTTP/1.1 101 Switching Protocols"];
  for (let at = 0; at < fields.length; at += 2) lines.push(`${fields[at]}: ${fields[at + 1]}`);
  client.socket.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  if (server.head.length > 0) client.socket.write(server.head);
  if (client.head.length > 0) server.socket.write(client.head);
  joinConnections(client.socket, server.socket);
}

/** Carries the bytes of two connections both ways until they end. */
export function joinConnections(one: Socket, other: Socket): void {
  join(one, other);
  join(other, one);
}

/**
 * Sends what arrives on one connection to the other, no faster than that takes it. Both end
 * together: what one has sent before its end is still delivered, and one that breaks breaks the
 * other.
 */
function join(from: Socket, to: Socket): void {
  from.on("error", () => undefined);
  from.once("close", () => {
    if (from.readableEnded) to.destroySoon();
    else to.destroy();
  });
  if (!carry(from, to)) from.pipe(to);
}
