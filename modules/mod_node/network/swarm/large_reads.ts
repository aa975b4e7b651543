/**
 * Makes sockets read as much as the system has available. Node.js delivers pieces of 64 KiB, each
 * of which passes through all layers of a connection, and that costs more than handling the bytes.
 */
import type { OnReadOpts, Socket } from "node:net";

const BUFFER_BYTES = 512 * 1024;
/** A read of that many bytes is probably followed by another one. */
const LARGE_BYTES = 48 * 1024;
/** Minimum room for a read. */
const MIN_ROOM = 128 * 1024;

/**
 * Buffer that all quiet sockets read into; they deliver copies of it. Thousands of such sockets
 * therefore need no memory of their own.
 */
let shared: Buffer | undefined;

const usedAtOnce = new WeakSet<Socket>();

/**
 * Marks a socket whose data is processed before its listeners return. With large reads, data that
 * such a socket delivers while flowing is overwritten by the next read, so the socket needs no
 * memory of its own.
 */
export function markUsedAtOnce(socket: Socket): void {
  usedAtOnce.add(socket);
}

/**
 * Returns read options for one socket. Delivered data is never overwritten, unless the socket is
 * marked as used at once, so recipients may retain it.
 */
export function largeReads(): OnReadOpts {
  /** The rest of the buffer that a busy socket reads into, one piece after another. */
  let own: Buffer | undefined;
  const received = (length: number): Buffer => {
    if (own === undefined) {
      const copy = Buffer.from((shared as Buffer).subarray(0, length));
      if (length >= LARGE_BYTES) own = Buffer.allocUnsafeSlow(BUFFER_BYTES);
      return copy;
    }
    const read = own.subarray(0, length);
    own = own.subarray(length);
    if (length < LARGE_BYTES) own = undefined;
    else if (own.length < MIN_ROOM) own = Buffer.allocUnsafeSlow(BUFFER_BYTES);
    return read;
  };
  return {
    buffer: () => own ?? (shared ??= Buffer.allocUnsafeSlow(BUFFER_BYTES)),
    callback(this: Socket, length: number, buffer: Uint8Array) {
      // Data that does not flow is buffered in the socket.
      if (!usedAtOnce.has(this) || this.readableFlowing !== true || this.readableLength > 0)
        return this.push(received(length));
      own = undefined;
      return this.push(buffer.subarray(0, length));
    },
  };
}
