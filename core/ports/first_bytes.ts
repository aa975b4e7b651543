/** Waits for the first bytes of accepted connections. */
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Milliseconds to wait for the first bytes, because some clients connect long before their first
 * request.
 */
const LATE_MS = 500;
const LOOK_MS = 5;

/**
 * Waits for the first bytes of all connections that have sent nothing yet, after new ones are no
 * longer accepted: a client that is sending a request cannot know that this server ends.
 */
export async function firstBytes(sockets: ReadonlyMap<Socket, unknown>): Promise<void> {
  const until = performance.now() + LATE_MS;
  const isSilent = (socket: Socket) => socket.bytesRead === 0 && !socket.destroyed;
  while (performance.now() < until && sockets.keys().some(isSilent)) await sleep(LOOK_MS);
}
