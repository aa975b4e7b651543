/** Buffers that connections read into, and that serve again. */

const BUFFER_BYTES = 256 * 1024;
/** In use at the same time, of all connections. */
const MAX_IN_USE = 64;
/** Kept for the next reader. */
const MAX_FREE = 16;

const free: Buffer[] = [];
const inUse = new Set<ArrayBufferLike>();
let shared: Buffer | undefined;

/** For one reader, until it is released; undefined when too many are in use. */
export function readBuffer(): Buffer | undefined {
  if (inUse.size >= MAX_IN_USE) return undefined;
  const buffer = free.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
  inUse.add(buffer.buffer);
  return buffer;
}

/** One for all: what is read into it is to be copied or used at once. */
export function sharedReadBuffer(): Buffer {
  return (shared ??= Buffer.allocUnsafeSlow(BUFFER_BYTES));
}

/** Has the buffer that these bytes are in serve again; false if it is none of these. */
export function releaseReadBuffer({ buffer }: Uint8Array): boolean {
  if (!inUse.delete(buffer)) return false;
  if (free.length < MAX_FREE) free.push(Buffer.from(buffer as ArrayBuffer));
  return true;
}

/** Leaves the buffer that these bytes are in to whoever has them. */
export function keepReadBuffer({ buffer }: Uint8Array): void {
  inUse.delete(buffer);
}
