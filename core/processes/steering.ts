/**
 * Connections whose first request is one that another process answers are handed to that process as a whole: clients that keep
 * asking it, such as those of the RPC, cost no more than with one process. What comes later on other connections, and what
 * comes over TLS, is handed over request by request.
 */
import type { Socket } from "node:net";
import { requestPath } from "./shared_paths.ts";

/** What has been read of a connection goes beside it. */
export type PassConnection = (socket: Socket, head: Uint8Array, to: number) => void;

/** Methods are short, and a request begins with one. */
const REQUEST_LINE = /^[A-Z-]{1,32} (\S+) HTTP\/1\.1\r?\n/;

/** Longer ones are not looked at. */
const MAX_LINE = 8192;

export interface SteeringDeps {
  /** The number of the process that is to have it; undefined for this one. */
  placeOf(path: string, socket: Socket): number | undefined;
  pass: PassConnection;
}

/**
 * Looks at the first bytes of a connection, and either passes it on or serves it here. One that says nothing for `patience`
 * milliseconds is served here, where it is timed like any other.
 */
export function steer(socket: Socket, serve: () => void, patience: number, { placeOf, pass }: SteeringDeps): void {
  let isOver = false;
  const leave = () => {
    isOver = true;
    clearTimeout(timer);
    socket.off("readable", look).off("end", stay).off("close", leave);
  };
  const stay = () => {
    if (isOver) return;
    leave();
    if (!socket.destroyed) serve();
  };
  const look = () => {
    const head = socket.read() as Buffer | null;
    if (isOver || head === null) return;
    const path = pathIn(head);
    const place = path === undefined ? undefined : placeOf(path, socket);
    if (place === undefined) {
      socket.unshift(head);
      stay();
      return;
    }
    leave();
    pass(socket, head, place);
  };
  const timer = setTimeout(stay, patience).unref();
  socket
    .on("error", () => undefined)
    .on("close", leave)
    .on("end", stay)
    .on("readable", look);
}

/** The path of a request that begins here. */
function pathIn(head: Buffer): string | undefined {
  const end = head.indexOf(10);
  if (end < 0 || end > MAX_LINE) return undefined;
  const [, target] = REQUEST_LINE.exec(head.toString("latin1", 0, end + 1)) ?? [];
  return target === undefined ? undefined : requestPath(target);
}
