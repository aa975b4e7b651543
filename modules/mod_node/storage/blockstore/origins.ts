/** How the block in a buffer can be read again, so that nobody need keep it meanwhile. */

interface Origin {
  /** Where the block begins in the buffer. */
  readonly start: number;
  readonly again: () => Promise<Uint8Array>;
}

/** Bytes of a block that can be read again. */
export interface BlockPart {
  /** Reads the block. */
  readonly again: Origin["again"];
  /** Where the bytes begin in the block. */
  readonly offset: number;
  readonly length: number;
  /** Of the buffer. */
  readonly capacity: number;
}

/** Blocks that are no longer are not remembered: keeping them costs little, and they share buffers. */
export const MIN_REMEMBERED_BYTES = 64 * 1024 + 1;

const origins = new WeakMap<ArrayBufferLike, Origin>();

/** `bytes` are those of a block of at least `MIN_REMEMBERED_BYTES`, which `again` reads. */
export function remember({ buffer, byteOffset }: Uint8Array, again: Origin["again"]): void {
  origins.set(buffer, { start: byteOffset, again });
}

/** The buffer will hold something else. */
export const forget = (buffer: ArrayBufferLike): boolean => origins.delete(buffer);

/** Where bytes are from; undefined for those that are no part of a block, or of a short one. */
export function originOf({ buffer, byteOffset, length }: Uint8Array): BlockPart | undefined {
  const capacity = buffer.byteLength;
  const origin = capacity < MIN_REMEMBERED_BYTES ? undefined : origins.get(buffer);
  return origin && { again: origin.again, offset: byteOffset - origin.start, length, capacity };
}
