/**
 * Routes whole connections by their first request. If another process serves that request, it gets
 * the connection. Clients that keep sending such requests, such as those of an RPC, then cost no
 * more than with one process. Later requests of other kinds, and all requests over TLS, are
 * forwarded one by one.
 */
import type { Socket } from "node:net";
import { requestPath } from "./shared_paths.ts";

/** Matches the line that begins a request. Names of methods are short. */
const REQUEST_LINE = /^[A-Z-]{1,32} (\S+) HTTP\/1\.1\r?\n/;

/** Bytes of the longest request line that is read. Connections with longer ones are served here. */
const MAX_LINE = 8192;

/**
 * Reads the first bytes of a connection, and calls `serve` unless `handsOver` returns true for them
 * and for the path of the request. A connection that sends nothing for `patience` milliseconds is
 * served here, where it has the same timeouts as others.
 */
export function routeConnection(
  socket: Socket,
  serve: () => void,
  patience: number,
  handsOver: (path: string, head: Buffer) => boolean,
): void {
  const leave = () => {
    clearTimeout(timer);
    socket.off("readable", read).off("end", stay).off("close", leave);
  };
  const stay = () => {
    leave();
    if (!socket.destroyed) serve();
  };
  const read = () => {
    // Without a length, Node.js 26 returns one piece instead of all that has arrived.
    const head = socket.read(socket.readableLength) as Buffer | null;
    if (head === null) return;
    const path = pathIn(head);
    if (path !== undefined && handsOver(path, head)) {
      leave();
      return;
    }
    socket.unshift(head);
    stay();
  };
  const timer = setTimeout(stay, patience).unref();
  socket
    .on("error", () => undefined)
    .on("close", leave)
    .on("end", stay)
    .on("readable", read);
}

/** Returns the path in the request line; undefined if the bytes contain no whole line. */
function pathIn(head: Buffer): string | undefined {
  const end = head.indexOf(10);
  if (end < 0 || end > MAX_LINE) return undefined;
  const [, target] = REQUEST_LINE.exec(head.toString("latin1", 0, end + 1)) ?? [];
  return target === undefined ? undefined : requestPath(target);
}
