/** Ends HTTP/2 sessions whose client has left without Node noticing. */
import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { bytesTaken } from "../patches/node/bytes_taken.ts";

/**
 * Calls `quiet` when nothing arrived on a connection. Pending input is read first, because timers
 * run before it when this process was suspended or busy. Resolves with true, without the call, when
 * something arrived.
 */
export async function afterReading(bytesRead: () => number, quiet: () => void): Promise<boolean> {
  const before = bytesRead();
  await nextTurn();
  await nextTurn();
  const hasMore = bytesRead() !== before;
  if (!hasMore) quiet();
  return hasMore;
}

/** An empty SETTINGS frame takes fewer bytes of the connection than this. */
const MAX_PROBE_BYTES = 100;

/**
 * Cuts a session when no bytes move on its connection and the client does not acknowledge a
 * SETTINGS frame, as every client does. Node stops reading while much waits to be sent, and then
 * never notices that the client has left: the connection would stay for ever. `interval`:
 * milliseconds without progress before the frame is sent, and again before the session is cut.
 */
export function cutWhenLost(session: ServerHttp2Session, socket: Socket, interval: number): void {
  let read = -1;
  let taken = -1;
  let isProbed = false;
  const look = () => {
    const nowRead = socket.bytesRead;
    const nowTaken = bytesTaken(socket) ?? socket.bytesWritten;
    const hasArrived = nowRead !== read;
    const isTaking = nowTaken - taken > MAX_PROBE_BYTES;
    read = nowRead;
    taken = nowTaken;
    if (hasArrived) isProbed = false;
    if (hasArrived || isTaking) return;
    if (!isProbed && !session.destroyed) {
      isProbed = true;
      // A closing session cannot send a ping, so it sends settings.
      session.settings({});
    } else {
      session.destroy();
      socket.destroy();
    }
  };
  const timer = setInterval(() => void afterReading(() => socket.bytesRead, look), interval).unref();
  socket.once("close", () => clearInterval(timer));
}
