import { Socket } from "node:net";
import { createServer } from "../../../util/node_http.ts";

type Insides = Socket & { _paused?: boolean; readonly parser?: { resume(): void } | null };

/**
 * Nothing more is read from a connection of HTTP/1 until `resumeReading`: Node itself would read on as soon as some bytes
 * of an answer have gone. To be called while a request is being announced.
 */
export function holdReading(socket: Socket): void {
  Object.defineProperty(socket, "_paused", { configurable: true, get: () => true, set: () => undefined });
  socket.pause();
}

export function resumeReading(socket: Socket): void {
  const inside = socket as Insides;
  Object.defineProperty(socket, "_paused", { configurable: true, writable: true, value: false });
  inside.parser?.resume();
  if (!socket.destroyed) socket.resume();
}

/** Takes a connection from Node's parser for good: what comes goes to `read`, and a held one is read again. */
export function letGoOfReading(socket: Socket, read: (piece: Buffer) => void): void {
  Object.defineProperty(socket, "_paused", { configurable: true, writable: true, value: false });
  // Node stops parsing when it hears of another reader.
  socket.removeAllListeners("data").on("data", read);
  socket.resume();
}

/** Why connections are not held, in a sentence; undefined when they are. */
export function whyReadingIsNotHeld(): string | undefined {
  const socket: Insides = new Socket();
  createServer().emit("connection", socket);
  const isKnown = socket._paused === false && typeof socket.parser?.resume === "function";
  socket.destroy();
  if (isKnown) return undefined;
  return "this version of Node.js pauses connections in another way: clients can have many requests wait on one of them";
}
