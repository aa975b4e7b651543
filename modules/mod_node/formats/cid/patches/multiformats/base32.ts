/**
 * Writes long CIDs in base32 fast: those of blocks that are their own CIDs may have a megabyte. The library joins the
 * letters one by one, which takes several times as long, and more memory.
 */
import { base32 } from "multiformats/bases/base32";

/** What is touched, as for the other bases. */
interface Insides {
  readonly encoder: { baseEncode: (bytes: Uint8Array) => string };
  baseEncode: unknown;
}

/** Bytes; for shorter ones the library's way is as good. */
const MIN_LONG = 1024;
const BITS = 5;
const letters = Buffer.from("abcdefghijklmnopqrstuvwxyz234567");

/** To be called once, before any CID is written. */
export function replaceLongBase32(): void {
  const codec = base32 as unknown as Insides;
  const short = codec.encoder.baseEncode;
  const encode = (bytes: Uint8Array) => (bytes.length < MIN_LONG ? short(bytes) : encodeLong(bytes));
  codec.baseEncode = encode;
  codec.encoder.baseEncode = encode;
}

function encodeLong(bytes: Uint8Array): string {
  const text = Buffer.allocUnsafe(Math.ceil((bytes.length * 8) / BITS));
  let length = 0;
  let held = 0;
  let count = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    held = ((held << 8) | (bytes[at] as number)) & 0xffff;
    for (count += 8; count >= BITS; ) {
      count -= BITS;
      text[length++] = letters[(held >> count) & 31] as number;
    }
  }
  if (count > 0) text[length++] = letters[(held << (BITS - count)) & 31] as number;
  return text.toString("latin1", 0, length);
}
