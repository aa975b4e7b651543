/**
 * Replaces the encoders and decoders of multiformats for bases that are not a power of two, with
 * faster ones that limit the length. The library's own take quadratic time, and peers can send such
 * texts: everything that uses the library reads and writes peer ids and addresses with them.
 */
import { base10 } from "multiformats/bases/base10";
import { base36, base36upper } from "multiformats/bases/base36";
import { base58btc, base58flickr } from "multiformats/bases/base58";
import { BaseX } from "../../base_x.ts";

/** The multiformats version that this patch was written for; package.json pins it. */
export const MULTIFORMATS_VERSION = "14.0.5";

/**
 * The private fields that are replaced: the functions of a codec, and the copies of them in its
 * encoder and decoder.
 */
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

/**
 * Replaces the functions of each of these codecs. Must be called once, before the first text is
 * read.
 */
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
