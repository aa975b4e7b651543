/** Reusable buffers that connections read into. */
import { BufferPool } from "./buffer_pool.ts";

const BUFFER_BYTES = 256 * 1024;
/** Maximum number of buffers in use, over all connections. */
const MAX_IN_USE = 64;
/** Maximum number of free buffers that are kept. */
const MAX_FREE = 16;

const pool = new BufferPool(BUFFER_BYTES, MAX_FREE, MAX_IN_USE);
/** A buffer passes from a connection to the reader of a body, so all of them are one owner. */
const readers = {};
let shared: Buffer | undefined;

/** Returns a buffer for one reader, until it is released; undefined when too many are in use. */
export const readBuffer = (): Buffer | undefined => pool.lease(readers);

/** Returns the number of buffers in use, over all connections. */
export const readBuffersInUse = (): number => pool.leased;

/** Returns the buffer that connections share. Its contents must be copied or used at once. */
export function sharedReadBuffer(): Buffer {
  return (shared ??= Buffer.allocUnsafeSlow(BUFFER_BYTES));
}

/** Releases the buffer that contains these bytes; false when it is not one of these. */
export const releaseReadBuffer = (piece: Uint8Array): boolean => pool.release(piece, readers);

/** Leaves the buffer that contains these bytes to its user for good. */
export function keepReadBuffer(piece: Uint8Array): void {
  pool.keep(piece, readers);
}
