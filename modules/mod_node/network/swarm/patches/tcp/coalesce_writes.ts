/**
 * Writes what a TCP connection sends at a time in one go. The library writes each piece of it by itself: length, bytes
 * and tag of an encrypted frame are three system calls here, and as many reads at the other end.
 */
import { Socket } from "node:net";
import type { MessageStream } from "@libp2p/interface";
import { Uint8ArrayList } from "uint8arraylist";
import { detach } from "../../../../util/async/read_all.ts";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "@libp2p/tcp",
  version: "11.0.28",
  without: "each piece of a frame is written by itself, which costs more time",
};

interface Sent {
  readonly sentBytes: number;
  readonly canSendMore: boolean;
}

/** What is used of the library's connection over a socket. */
type SocketConnection = MessageStream & { readonly socket?: unknown; sendData?(data: Uint8ArrayList): Sent };

/** The socket of a TCP connection; undefined for one of websockets or through a relay. */
export function socketOf(connection: MessageStream): Socket | undefined {
  const { socket } = connection as SocketConnection;
  return socket instanceof Socket ? socket : undefined;
}

export interface WriteOptions {
  /** The memory of what was written is freed as well: whoever sends it must not use it any more. */
  readonly transfer?: boolean;
}

/**
 * Changes the connection in place. One that stands on no socket, as of websockets or through a relay, stays as it is.
 */
export function coalesceWrites<C extends MessageStream>(
  connection: C,
  notices: PatchNotices,
  { transfer = false }: WriteOptions = {},
): C {
  const socket = socketOf(connection);
  if (socket === undefined) return connection;
  const tcp = connection as SocketConnection;
  if (!notices.isApplicable(patch, { "connection.sendData": tcp.sendData })) return connection;
  tcp.sendData = (data) => {
    const pieces = coalesce(data);
    socket.cork();
    for (const piece of pieces) socket.write(piece);
    socket.uncork();
    // The system has taken all of it.
    if (transfer && socket.writableLength === 0) for (const piece of pieces) detach(piece);
    return { sentBytes: data.byteLength, canSendMore: socket.writableLength < socket.writableHighWaterMark };
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
