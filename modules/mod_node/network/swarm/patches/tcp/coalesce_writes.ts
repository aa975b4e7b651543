/**
 * Writes what a TCP connection sends at a time in one go. The library writes each piece of it by itself: length, bytes
 * and tag of an encrypted frame are three system calls here, and as many reads at the other end.
 */
import { Socket } from "node:net";
import type { MessageStream } from "@libp2p/interface";
import { isUint8ArrayList, Uint8ArrayList } from "uint8arraylist";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "@libp2p/tcp",
  version: "11.0.28",
  without: "each piece of a frame is written by itself, which costs more time",
};

/** What is used of the library's connection over a socket. */
type SocketConnection = MessageStream & { readonly socket?: unknown; sendData?(data: unknown): unknown };

/**
 * Changes the connection in place. One that stands on no socket, as of websockets or through a relay, stays as it is.
 */
export function coalesceWrites<C extends MessageStream>(connection: C, notices: PatchNotices): C {
  const { socket, sendData } = connection as SocketConnection;
  if (!(socket instanceof Socket)) return connection;
  if (!notices.isApplicable(patch, { "connection.sendData": sendData })) return connection;
  (connection as SocketConnection).sendData = (data) => {
    socket.cork();
    try {
      return sendData?.call(connection, isUint8ArrayList(data) ? coalesce(data) : data);
    } finally {
      socket.uncork();
    }
  };
  return connection;
}

/** Bytes from which on a piece is written by itself: below, the write costs more than the copy. */
const MIN_SEPARATE_SIZE = 2048;

/** The same bytes in fewer pieces. */
export function coalesce(pieces: Iterable<Uint8Array>): Uint8ArrayList {
  const all = new Uint8ArrayList();
  let run: Uint8Array[] = [];
  const flush = () => {
    if (run.length > 0) all.append(run.length === 1 ? (run[0] as Uint8Array) : Buffer.concat(run));
    run = [];
  };
  for (const piece of pieces) {
    if (piece.length < MIN_SEPARATE_SIZE) {
      run.push(piece);
      continue;
    }
    flush();
    all.append(piece);
  }
  flush();
  return all;
}
