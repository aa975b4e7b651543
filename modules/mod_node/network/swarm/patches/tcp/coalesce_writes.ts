/**
 * Writes everything that a TCP connection sends at a time in one system call. The library writes
 * each piece separately: length, bytes and tag of an encrypted frame are three system calls here,
 * and as many reads at the other end.
 */
import { Socket } from "node:net";
import type { MessageStream } from "@libp2p/interface";
import { Uint8ArrayList } from "uint8arraylist";
import { detach } from "../../../../util/async/read_all.ts";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "@libp2p/tcp",
  version: "11.0.28",
  without: "each piece of a frame is written separately, which takes more time",
};

interface Sent {
  readonly sentBytes: number;
  readonly canSendMore: boolean;
}

/** The parts of the library's socket connection that this patch uses. */
type SocketConnection = MessageStream & { readonly socket?: unknown; sendData?(data: Uint8ArrayList): Sent };

/**
 * Returns the socket of a TCP connection; undefined for a connection over WebSockets or through a
 * relay.
 */
export function socketOf(connection: MessageStream): Socket | undefined {
  const { socket } = connection as SocketConnection;
  return socket instanceof Socket ? socket : undefined;
}

export interface WriteOptions {
  /**
   * Whether to free the memory of written data as well; senders must then not use it afterwards.
   */
  readonly transfer?: boolean;
}

/**
 * Changes the connection in place. A connection without a socket of its own, such as one over
 * WebSockets or through a relay, stays unchanged.
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
    // The system has accepted all data.
    if (transfer && socket.writableLength === 0) for (const piece of pieces) detach(piece);
    return { sentBytes: data.byteLength, canSendMore: socket.writableLength < socket.writableHighWaterMark };
  };
  return connection;
}

/** Minimum size of a piece that is written separately: below it, a write costs more than a copy. */
const MIN_SEPARATE_SIZE = 2048;

/** Returns the same bytes in fewer pieces. */
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
