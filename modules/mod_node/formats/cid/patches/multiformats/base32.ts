/**
 * Replaces the base32 encoder of multiformats. The library's encoder joins single letters, which
 * takes ten times as long for every CID. For identity CIDs, which can be a megabyte long, it also
 * uses a lot of memory.
 */
import { base32 } from "multiformats/bases/base32";

/** The private fields that are replaced. */
interface Insides {
  readonly encoder: { baseEncode: (bytes: Uint8Array) => string };
  baseEncode: unknown;
}

const BITS = 5;
const letters = Buffer.from("abcdefghijklmnopqrstuvwxyz234567");
/** A reusable buffer for texts of the usual length. */
const usual = Buffer.allocUnsafeSlow(1024);

/** Must be called once, before the first CID is written. */
export function replaceBase32(): void {
  const codec = base32 as unknown as Insides;
  codec.baseEncode = encode;
  codec.encoder.baseEncode = encode;
}

function encode(bytes: Uint8Array): string {
  const letterCount = Math.ceil((bytes.length * 8) / BITS);
  const text = letterCount <= usual.length ? usual : Buffer.allocUnsafe(letterCount);
  let length = 0;
  let bitBuffer = 0;
  let count = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    bitBuffer = ((bitBuffer << 8) | (bytes[at] as number)) & 0xffff;
    for (count += 8; count >= BITS; ) {
      count -= BITS;
      text[length++] = letters[(bitBuffer >> count) & 31] as number;
    }
  }
  if (count > 0) text[length++] = letters[(bitBuffer << (BITS - count)) & 31] as number;
  return text.toString("latin1", 0, length);
}
