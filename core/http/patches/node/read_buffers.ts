/** Buffers that connections read into, and that serve again. */
import { BufferPool } from "./buffer_pool.ts";

const BUFFER_BYTES = 256 * 1024;
/** In use at the same time, of all connections. */
const MAX_IN_USE = 64;
/** Kept for the next reader. */
const MAX_FREE = 16;

const pool = new BufferPool(BUFFER_BYTES, MAX_FREE, MAX_IN_USE);
/** A buffer goes from a connection to the reader of a body: all of them are one owner. */
const readers = {};
let shared: Buffer | undefined;

/** For one reader, until it is released; undefined when too many are in use. */
export const readBuffer = (): Buffer | undefined => pool.lend(readers);

/** How many are in use, of all connections. */
export const readBuffersInUse = (): number => pool.lent;

/** One for all: what is read into it is to be copied or used at once. */
export function sharedReadBuffer(): Buffer {
  return (shared ??= Buffer.allocUnsafeSlow(BUFFER_BYTES));
}

/** Has the buffer that these bytes are in serve again; false if it is none of these. */
export const releaseReadBuffer = (piece: Uint8Array): boolean => pool.release(piece, readers);

/** Leaves the buffer that these bytes are in to whoever has them. */
export function keepReadBuffer(piece: Uint8Array): void {
  pool.keep(piece, readers);
}
