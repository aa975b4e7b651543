/** HTTP/2 sessions whose client is gone without Node noticing. */
import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { bytesTaken } from "./patches/node/bytes_taken.ts";

/**
 * Judges a connection only after what has arrived on it was read: timers go first when this process was suspended or busy.
 * Resolves with true, and does not call, when there was something.
 */
export async function afterReading(bytesRead: () => number, quiet: () => void): Promise<boolean> {
  const before = bytesRead();
  await nextTurn();
  await nextTurn();
  const hasMore = bytesRead() !== before;
  if (!hasMore) quiet();
  return hasMore;
}

/** Settings that say nothing take less of a connection. */
const MAX_QUESTION_BYTES = 100;

/**
 * Cuts a session on whose connection nothing moves, and whose client does not confirm settings, as any client does. Node
 * stops reading while much waits to be sent, and never hears then that the client has left: the connection would stay for
 * ever. `interval`: milliseconds, for which nothing moves before it is asked, and again before it is cut.
 */
export function cutWhenLost(session: ServerHttp2Session, socket: Socket, interval: number): void {
  let [read, taken] = [-1, -1];
  let isAsked = false;
  const look = () => {
    const [nowRead, nowTaken] = [socket.bytesRead, bytesTaken(socket) ?? socket.bytesWritten];
    const isHeard = nowRead !== read;
    const isTaking = nowTaken - taken > MAX_QUESTION_BYTES;
    [read, taken] = [nowRead, nowTaken];
    if (isHeard) isAsked = false;
    if (isHeard || isTaking) return;
    if (!isAsked && !session.destroyed) {
      isAsked = true;
      // A session that is closing sends no ping any more.
      session.settings({});
    } else {
      session.destroy();
      socket.destroy();
    }
  };
  const timer = setInterval(() => void afterReading(() => socket.bytesRead, look), interval).unref();
  socket.once("close", () => clearInterval(timer));
}
