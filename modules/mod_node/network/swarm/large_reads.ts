/**
 * Sockets that take from the system as much as is there: Node hands on pieces of 64 KiB, each of which goes through all layers of a
 * connection, and that costs more than the bytes do.
 */
import type { OnReadOpts, Socket } from "node:net";

const BUFFER_BYTES = 512 * 1024;
/** A read of so many bytes is likely to be followed by another. */
const LARGE_BYTES = 48 * 1024;
/** A read has at least so much room. */
const MIN_ROOM = 128 * 1024;

/** All quiet sockets read into it; what they hand on is a copy. There may be thousands, which hold nothing so. */
let shared: Buffer | undefined;

const usedAtOnce = new WeakSet<Socket>();

/**
 * What a socket with large reads hands on while it flows is written over by the next read: whoever gets it is done with it when
 * the socket's listeners return. Such a socket needs no memory of its own.
 */
export function useReadsAtOnce(socket: Socket): void {
  usedAtOnce.add(socket);
}

/** For one socket. What it hands on is never written over, unless it is used at once: whoever gets it may keep it. */
export function largeReads(): OnReadOpts {
  /** What is left of the buffer that a busy socket reads into, piece behind piece. */
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
      // What does not flow waits in the socket.
      if (!usedAtOnce.has(this) || this.readableFlowing !== true || this.readableLength > 0)
        return this.push(received(length));
      own = undefined;
      return this.push(buffer.subarray(0, length));
    },
  };
}
