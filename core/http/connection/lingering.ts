/** Ends connections while the client may still be sending. */
import type { Socket } from "node:net";
import { isHttp2 } from "../../util/http2.ts";
import type { NodeRequest, NodeResponse } from "../../util/node_messages.ts";
import { takeOverReading } from "../patches/node/reading.ts";

/**
 * Bytes that are read and dropped from a connection that ends. After that the host stops reading.
 */
const MAX_DROPPED_BYTES = 4 * 1024 * 1024;
/**
 * Milliseconds that a client has to end its side after the system has taken the end of the
 * response.
 */
const MAX_LINGER_TIME_MS = 2000;

const ending = new WeakSet<Socket>();

/** Whether `endSlowly` is ending the connection. Bytes that arrive on it are ignored. */
export const isEnding = (socket: Socket): boolean => ending.has(socket);

/**
 * Ends a connection in the stages of RFC 9112, 9.6. The host stops writing, drops incoming bytes
 * unparsed, and closes the connection when the client has ended its side or a limit is reached.
 * Closing with unread bytes would reset the connection, and the client might lose the response.
 */
export function endSlowly(socket: Socket): void {
  if (socket.destroyed || ending.has(socket)) return;
  ending.add(socket);
  let left = MAX_DROPPED_BYTES;
  const drop = (piece: Buffer) => {
    left -= piece.length;
    if (left < 0) socket.pause();
  };
  takeOverReading(socket, drop);
  const wait = () => {
    const timer = setTimeout(() => socket.destroy(), MAX_LINGER_TIME_MS);
    socket.once("close", () => clearTimeout(timer));
  };
  socket.once("finish", wait);
  socket.end();
  if (socket.writableFinished) wait();
}

/** Makes Node's HTTP server use `endSlowly` after the last response of a connection. */
export function endsSlowly(socket: Socket): void {
  socket.destroySoon = destroySoon;
}

function destroySoon(this: Socket): void {
  endSlowly(this);
}

/**
 * Milliseconds after which a client that has ended its side is probed. Systems forget a closed
 * connection after a minute.
 */
const PROBE_DELAY_MS = 60_000;

/**
 * Turns on TCP keep-alive when the client ends its side. Such a client may still read or may have
 * left, and only sending something shows which. The system's probes find out when a handler has
 * nothing to send.
 */
export function probesHalfClosed(socket: Socket): void {
  // A function that all connections share, and no `once`, which creates another one: idle
  // connections take less memory. The event is emitted once.
  socket.on("end", probe);
}

function probe(this: Socket): void {
  this.setKeepAlive(true, PROBE_DELAY_MS);
}

/**
 * Calls back when the client of an HTTP/1 request ends its side of the connection before the
 * response is over.
 */
export function whenHalfClosed(request: NodeRequest, response: NodeResponse, ended: (socket: Socket) => void): void {
  if (isHttp2(request)) return;
  const { socket } = request;
  const onEnd = () => ended(socket);
  socket.once("end", onEnd);
  response.once("close", () => socket.off("end", onEnd));
}
