/**
 * Routes whole connections by their first request. If another process has to answer that request,
 * it gets the connection: clients that keep sending such requests, such as those of an RPC, then
 * cost no more than with one process. Later requests of other kinds, and all requests over TLS, are
 * forwarded one by one.
 */
import type { Socket } from "node:net";
import { requestPath } from "./shared_paths.ts";

/** Matches the line that begins a request. Names of methods are short. */
const REQUEST_LINE = /^[A-Z-]{1,32} (\S+) HTTP\/1\.1\r?\n/;

/** Bytes of the longest request line that is read. Connections with longer ones are served here. */
const MAX_LINE = 8192;

export interface RoutingDeps {
  /**
   * Returns the number of the process that has to serve the connection; undefined for this process.
   */
  processFor(path: string): number | undefined;
  /** Hands the connection over, of which `head` has been read. */
  handOver(head: Buffer, to: number): void;
}

/**
 * Reads the first bytes of a connection, and either hands it over or serves it here. A connection
 * that sends nothing for `patience` milliseconds is served here, where it has the same timeouts as
 * others.
 */
export function routeConnection(
  socket: Socket,
  serve: () => void,
  patience: number,
  { processFor, handOver }: RoutingDeps,
): void {
  let isDecided = false;
  const leave = () => {
    isDecided = true;
    clearTimeout(timer);
    socket.off("readable", read).off("end", stay).off("close", leave);
  };
  const stay = () => {
    if (isDecided) return;
    leave();
    if (!socket.destroyed) serve();
  };
  const read = () => {
    const head = socket.read() as Buffer | null;
    if (isDecided || head === null) return;
    const path = pathIn(head);
    const number = path === undefined ? undefined : processFor(path);
    if (number === undefined) {
      socket.unshift(head);
      stay();
      return;
    }
    leave();
    handOver(head, number);
  };
  const timer = setTimeout(stay, patience).unref();
  socket
    .on("error", () => undefined)
    .on("close", leave)
    .on("end", stay)
    .on("readable", read);
}

/** Returns the path of a request that begins here. */
function pathIn(head: Buffer): string | undefined {
  const end = head.indexOf(10);
  if (end < 0 || end > MAX_LINE) return undefined;
  const [, target] = REQUEST_LINE.exec(head.toString("latin1", 0, end + 1)) ?? [];
  return target === undefined ? undefined : requestPath(target);
}
