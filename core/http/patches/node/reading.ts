import { Socket } from "node:net";
import { createServer } from "../../../util/node_http.ts";

interface Parser {
  readonly socket?: Socket | null;
  pause(): void;
  resume(): void;
}

type Insides = Socket & { _paused?: boolean; readonly parser?: Parser | null };

/** Paused connections, and whether their end has arrived meanwhile. */
const paused = new WeakMap<Socket, { hasEnded: boolean }>();

/**
 * Pauses reading from an HTTP/1 connection until `resumeReading`. Node alone would resume as soon
 * as some bytes of a response have been sent. Must be called while a request is being emitted.
 *
 * Data that the system has already delivered is still parsed. Over TLS one delivery can contain
 * several records, each of which Node passes to the parser separately, and the end of the client's
 * side. That end takes effect when reading resumes, as if it were still in the system.
 */
export function pauseReading(socket: Socket): void {
  Object.defineProperty(socket, "_paused", { configurable: true, get: () => true, set: () => undefined });
  socket.pause();
  const { parser } = socket as Insides;
  if (parser != null) parser.pause = pauseParserUnlessPaused;
  paused.set(socket, { hasEnded: false });
  socket.push = pushUnlessEnd;
}

export function resumeReading(socket: Socket): void {
  release(socket);
  (socket as Insides).parser?.resume();
  if (!socket.destroyed) socket.resume();
}

/**
 * Takes a connection away from Node's parser for good. Data goes to `read`, and a paused connection
 * is resumed.
 */
export function takeOverReading(socket: Socket, read: (piece: Buffer) => void): void {
  release(socket);
  // Node stops parsing when another listener is added.
  socket.removeAllListeners("data").on("data", read);
  socket.resume();
}

/** Returns why connections cannot be paused, in a sentence; undefined when they can. */
export function whyReadingIsNotPaused(): string | undefined {
  const socket: Insides = new Socket();
  createServer().emit("connection", socket);
  const { parser } = socket;
  const isKnown =
    socket._paused === false &&
    parser?.socket === socket &&
    typeof parser.pause === "function" &&
    typeof parser.resume === "function";
  socket.destroy();
  if (isKnown) return undefined;
  return "this version of Node.js pauses connections in another way: clients can have many requests wait on one of them";
}

function release(socket: Socket): void {
  Object.defineProperty(socket, "_paused", { configurable: true, writable: true, value: false });
  const state = paused.get(socket);
  if (state === undefined) return;
  paused.delete(socket);
  Reflect.deleteProperty(socket, "push");
  // The end is reported later, as the system would do, so that a request that begins now can still
  // get its response.
  if (state.hasEnded) setImmediate(() => socket.destroyed || socket.push(null));
}

/**
 * Replaces `pause` of a parser. A paused parser takes further data for an error, so it must not
 * pause for a connection that is paused here. Parsers are reused, so the current connection is
 * looked up.
 */
function pauseParserUnlessPaused(this: Parser): void {
  if (this.socket == null || !paused.has(this.socket)) Object.getPrototypeOf(this).pause.call(this);
}

function pushUnlessEnd(this: Socket, ...piece: Parameters<Socket["push"]>): boolean {
  const state = paused.get(this);
  if (state === undefined || piece[0] !== null) return Socket.prototype.push.apply(this, piece);
  state.hasEnded = true;
  return false;
}
