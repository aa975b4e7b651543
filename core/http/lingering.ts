/** Connections that end while the client may still be sending. */
import type { Socket } from "node:net";
import { letGoOfReading } from "./patches/node/reading.ts";

/** What is read and dropped of a connection that ends. Of a client that sends more, no more is read. */
const MAX_DROPPED_BYTES = 4 * 1024 * 1024;
/** Milliseconds that a client has to end its side, from when the system has taken the last of the answer. */
const MAX_LINGER_TIME_MS = 2000;

const ending = new WeakSet<Socket>();

/** True of a connection that `endSlowly` has taken: nothing that comes on it counts any more. */
export const isEnding = (socket: Socket): boolean => ending.has(socket);

/**
 * Ends a connection in the stages of RFC 9112, 9.6: nothing more is written, what comes is dropped unparsed, and it is
 * closed when the client has ended its side or the bounds are reached. Closing it with something unread resets it, and
 * the client may lose the answer.
 */
export function endSlowly(socket: Socket): void {
  if (socket.destroyed || ending.has(socket)) return;
  ending.add(socket);
  let left = MAX_DROPPED_BYTES;
  const drop = (piece: Buffer) => {
    left -= piece.length;
    if (left < 0) socket.pause();
  };
  letGoOfReading(socket, drop);
  const wait = () => {
    const timer = setTimeout(() => socket.destroy(), MAX_LINGER_TIME_MS);
    socket.once("close", () => clearTimeout(timer));
  };
  socket.once("finish", wait);
  socket.end();
  if (socket.writableFinished) wait();
}

/** Has Node's HTTP server end a connection so, after an answer that is its last. */
export function endsSlowly(socket: Socket): void {
  socket.destroySoon = destroySoon;
}

function destroySoon(this: Socket): void {
  endSlowly(this);
}
