/**
 * Bounds the bases of the library that are no power of two, and makes them fast. Its own take time
 * with the square of the length, and whatever uses the library (peer ids and addresses in messages
 * of peers) writes and reads such texts.
 */
import { base10 } from "multiformats/bases/base10";
import { base36, base36upper } from "multiformats/bases/base36";
import { base58btc, base58flickr } from "multiformats/bases/base58";
import { BaseX } from "../../base_x.ts";

/** The version that it was written for, pinned in package.json. */
export const MULTIFORMATS_VERSION = "14.0.5";

/** What is touched: both ways of a codec, which its encoder and its decoder have as well. */
interface Insides {
  readonly name: string;
  readonly encoder: { baseEncode: unknown };
  readonly decoder: { baseDecode: unknown };
  baseEncode: unknown;
  baseDecode: unknown;
}

const small = "abcdefghijklmnopqrstuvwxyz";
const digits = "0123456789";
const letters58 = (upper: string, lower: string, order: "btc" | "flickr") =>
  `123456789${order === "btc" ? upper + lower : lower + upper}`;
const upper58 = "ABCDEFGHJKLMNPQRSTUVWXYZ";
const lower58 = "abcdefghijkmnopqrstuvwxyz";

const patched: readonly (readonly [codec: Insides, alphabet: string, caseInsensitive: boolean])[] = [
  [base10, digits, false],
  [base36, digits + small, true],
  [base36upper, digits + small.toUpperCase(), true],
  [base58btc, letters58(upper58, lower58, "btc"), false],
  [base58flickr, letters58(upper58, lower58, "flickr"), false],
];

/** Replaces both ways of each such codec. To be called once, before any text is read. */
export function replaceBaseX(): void {
  for (const [codec, alphabet, caseInsensitive] of patched) {
    const base = new BaseX(alphabet, codec.name, caseInsensitive);
    const encode = (bytes: Uint8Array) => base.encode(bytes);
    const decode = (text: string) => base.decode(text);
    codec.baseEncode = encode;
    codec.baseDecode = decode;
    codec.encoder.baseEncode = encode;
    codec.decoder.baseDecode = decode;
  }
}
