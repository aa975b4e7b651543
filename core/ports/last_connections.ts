/** Closes listening sockets without losing clients that have just connected. */
import { createServer, type Server } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { listenOn } from "./listen.ts";

/** The smallest backlog that Node.js requests from the system. */
const SMALLEST_QUEUE = 1;
/** Milliseconds within which the backlog is emptied. */
const MAX_EMPTYING_MS = 1000;
const MAX_SHARED_MS = 100;

/**
 * Accepts the connections in the system's backlog, and then closes the server. Closing a socket
 * resets the connections in its backlog, whose clients may have sent a request. The backlog is made
 * small first, so that later clients are refused and try again; otherwise clients that keep
 * connecting would keep it full. `isShared`: other processes continue to serve the socket, so its
 * backlog must not change.
 */
export async function closeAccepting(server: Server, { isShared }: { readonly isShared: boolean }): Promise<void> {
  let accepted = true;
  const accept = () => {
    accepted = true;
  };
  server.on("connection", accept);
  const closing = isShared ? server : await withSmallQueue(server);
  const end = performance.now() + (isShared ? MAX_SHARED_MS : MAX_EMPTYING_MS);
  // Node.js accepts one connection per turn of the event loop, and the first turn may be almost
  // over.
  while (accepted && performance.now() < end) {
    accepted = false;
    await nextTurn();
    await nextTurn();
  }
  server.off("connection", accept);
  closing.close();
  // The socket is closed at the end of this turn, and the server only with its last connection.
  await nextTurn();
}

/**
 * Starts another server on the socket of a server, with a small backlog. Returns the server itself
 * if that fails.
 */
async function withSmallQueue(server: Server): Promise<Server> {
  const options = { allowHalfOpen: true, noDelay: true };
  const last = createServer(options, (socket) => server.emit("connection", socket));
  return listenOn(last, server, SMALLEST_QUEUE).then(
    () => last,
    () => server,
  );
}
