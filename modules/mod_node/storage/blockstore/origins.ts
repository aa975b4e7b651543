/**
 * Remembers how the block in a buffer can be read again, so that slow clients need not retain it.
 */

interface Origin {
  /** Offset of the block in the buffer. */
  readonly start: number;
  readonly again: () => Promise<Uint8Array>;
}

/** A range of a block that can be read again. */
export interface BlockPart {
  /** Reads the block. */
  readonly again: Origin["again"];
  /** Offset of the bytes in the block. */
  readonly offset: number;
  readonly length: number;
  /** Length of the buffer. */
  readonly capacity: number;
}

/** Shorter blocks are not remembered: retaining them costs little, and they share buffers. */
export const MIN_REMEMBERED_BYTES = 64 * 1024 + 1;

const origins = new WeakMap<ArrayBufferLike, Origin>();

/**
 * Remembers that `again` reads the block with these bytes, which is at least `MIN_REMEMBERED_BYTES`
 * long.
 */
export function remember({ buffer, byteOffset }: Uint8Array, again: Origin["again"]): void {
  origins.set(buffer, { start: byteOffset, again });
}

/** Forgets a buffer whose content is about to change. */
export const forget = (buffer: ArrayBufferLike): boolean => origins.delete(buffer);

/** Returns the origin of bytes; undefined when they are not part of a block that is remembered. */
export function originOf({ buffer, byteOffset, length }: Uint8Array): BlockPart | undefined {
  const capacity = buffer.byteLength;
  const origin = capacity < MIN_REMEMBERED_BYTES ? undefined : origins.get(buffer);
  return origin && { again: origin.again, offset: byteOffset - origin.start, length, capacity };
}
