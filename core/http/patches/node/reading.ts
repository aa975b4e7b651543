import { Socket } from "node:net";
import { createServer } from "../../../util/node_http.ts";

interface Parser {
  readonly socket?: Socket | null;
  pause(): void;
  resume(): void;
}

type Insides = Socket & { _paused?: boolean; readonly parser?: Parser | null };

/** Connections that are not read, and whether their end has come meanwhile. */
const held = new WeakMap<Socket, { hasEnded: boolean }>();

/**
 * Nothing more is read from a connection of HTTP/1 until `resumeReading`: Node itself would read on as soon as some bytes
 * of an answer have gone. To be called while a request is being announced. What the system has given already is parsed:
 * over TLS one piece of it can be several records, each of which Node gives to the parser by itself, and the end of the
 * client's side; that end counts when reading goes on, as one does that is still in the system.
 */
export function holdReading(socket: Socket): void {
  Object.defineProperty(socket, "_paused", { configurable: true, get: () => true, set: () => undefined });
  socket.pause();
  const { parser } = socket as Insides;
  if (parser != null) parser.pause = pauseUnlessHeld;
  held.set(socket, { hasEnded: false });
  socket.push = pushUnlessEnd;
}

export function resumeReading(socket: Socket): void {
  release(socket);
  (socket as Insides).parser?.resume();
  if (!socket.destroyed) socket.resume();
}

/** Takes a connection from Node's parser for good: what comes goes to `read`, and a held one is read again. */
export function letGoOfReading(socket: Socket, read: (piece: Buffer) => void): void {
  release(socket);
  // Node stops parsing when it hears of another reader.
  socket.removeAllListeners("data").on("data", read);
  socket.resume();
}

/** Why connections are not held, in a sentence; undefined when they are. */
export function whyReadingIsNotHeld(): string | undefined {
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
  const hold = held.get(socket);
  if (hold === undefined) return;
  held.delete(socket);
  Reflect.deleteProperty(socket, "push");
  // Later, as the system tells of one: what begins now can answer at once.
  if (hold.hasEnded) setImmediate(() => socket.destroyed || socket.push(null));
}

/** Parsers serve many connections one after the other, so it asks for the one of now. A paused parser takes what it is given for an error. */
function pauseUnlessHeld(this: Parser): void {
  if (this.socket == null || !held.has(this.socket)) Object.getPrototypeOf(this).pause.call(this);
}

function pushUnlessEnd(this: Socket, ...piece: Parameters<Socket["push"]>): boolean {
  const hold = held.get(this);
  if (hold === undefined || piece[0] !== null) return Socket.prototype.push.apply(this, piece);
  hold.hasEnded = true;
  return false;
}
