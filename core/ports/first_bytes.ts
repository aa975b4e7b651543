/** Connections that have been accepted, and whose first bytes are on their way. */
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** Some clients connect long before they ask: they are waited for no longer, milliseconds. */
const LATE_MS = 500;
const LOOK_MS = 5;

/**
 * Waits for the first bytes of all that have sent nothing yet, when no further ones are accepted: a client whose request is
 * on its way cannot know that this server ends.
 */
export async function firstBytes(sockets: ReadonlyMap<Socket, unknown>): Promise<void> {
  const until = performance.now() + LATE_MS;
  const isSilent = (socket: Socket) => socket.bytesRead === 0 && !socket.destroyed;
  while (performance.now() < until && sockets.keys().some(isSilent)) await sleep(LOOK_MS);
}
