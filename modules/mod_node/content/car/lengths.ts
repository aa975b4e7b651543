/** Reads and checks the lengths of an archive's sections. */
import { MAX_BLOCK } from "../../storage/blockstore/make_block.ts";
import { failure, type NodeError } from "../../util/errors.ts";

/** Returns the error for a section that is too long; undefined for an allowed length. */
export function faultOf(length: number): NodeError | undefined {
  if (length <= MAX_BLOCK) return undefined;
  if (!Number.isFinite(length)) return failure("CAR_INVALID", { reason: "binary: varint overflows a 64-bit integer" });
  return failure("CAR_INVALID", { reason: `invalid car: a section of ${length} bytes is longer than ${MAX_BLOCK}` });
}

/**
 * Returns a varint and the offset after it. The length is infinite beyond 64 bits; the result is
 * undefined for an incomplete varint.
 */
export function lengthAt(bytes: Uint8Array, start: number): readonly [length: number, from: number] | undefined {
  let length = 0;
  let scale = 1;
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (at - start === 9 && byte > 1) return [Number.POSITIVE_INFINITY, at];
    length += (byte & 0x7f) * scale;
    if (byte < 0x80) return [length, at + 1];
    scale *= 128;
  }
  return undefined;
}
