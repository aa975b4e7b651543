/**
 * Decodes multibase text as go-multibase does: more leniently than the standards, and with its
 * error texts.
 */
import { failure } from "../../util/errors.ts";
import { trimEnd } from "../../util/trim.ts";
import type { Base } from "./multibase.ts";

const letters32 = "abcdefghijklmnopqrstuvwxyz234567";
const hex32 = "0123456789abcdefghijklmnopqrstuv";
const letters64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

interface Scheme {
  readonly name: "base32" | "base64";
  /** The value of each ASCII character as a digit; NO_DIGIT for all others. */
  readonly values: Uint8Array;
  readonly bits: number;
  /**
   * Lengths of an incomplete last group that encode bytes. A last group of another length is
   * ignored.
   */
  readonly groups: readonly number[];
}

const NO_DIGIT = 255;

function valuesOf(...alphabets: readonly string[]): Uint8Array {
  const values = new Uint8Array(128).fill(NO_DIGIT);
  for (const alphabet of alphabets)
    for (const [value, letter] of Buffer.from(alphabet).entries()) values[letter] = value;
  return values;
}

const base32 = (alphabet: string): Scheme => ({
  name: "base32",
  values: valuesOf(alphabet, alphabet.toUpperCase()),
  bits: 5,
  groups: [0, 2, 4, 5, 7],
});
const base64 = (rest: string): Scheme => ({
  name: "base64",
  values: valuesOf(letters64 + rest),
  bits: 6,
  groups: [0, 2, 3],
});

const schemes: ReadonlyMap<string, Scheme> = new Map([
  ...["b", "B", "c", "C"].map((prefix) => [prefix, base32(letters32)] as const),
  ...["v", "V", "t", "T"].map((prefix) => [prefix, base32(hex32)] as const),
  ...["m", "M"].map((prefix) => [prefix, base64("+/")] as const),
  ...["u", "U"].map((prefix) => [prefix, base64("-_")] as const),
]);

/**
 * Decodes a text with its multibase prefix. In base16 and base32, case does not matter. Bits after
 * the last byte are ignored.
 *
 * @throws NodeError with the error text of go-multibase
 */
export function decodeMultibase(base: Base, text: string): Uint8Array {
  try {
    return base.decoder.decode(text);
  } catch (error) {
    if (error instanceof RangeError) throw failure("MULTIBASE_INVALID", { reason: error.message }, error);
    const rest = text.slice(1);
    return decodePiece(base, base.name.includes("pad") ? trimEnd(rest, "=") : rest, 0);
  }
}

/** Maximum number of characters of a text that an error shows. */
const MAX_SHOWN = 256;

/**
 * Decodes a part of a text that has neither prefix nor padding. Every part except the last must
 * consist of complete groups.
 *
 * @param from offset of the part in the text, for errors
 *
 *
 * @throws NodeError with the error text of go-multibase
 */
export function decodePiece(base: Base, text: string, from: number): Uint8Array {
  const { name, prefix, decoder } = base;
  const scheme = schemes.get(prefix);
  if (scheme !== undefined) return decodeLeniently(text, scheme, from);
  if (name.startsWith("base16")) return fromHex(text);
  if (name === "base2" && /^[01]*$/.test(text)) return fromBits(text);
  try {
    return decoder.decode(prefix + text);
  } catch (error) {
    if (error instanceof RangeError) throw failure("MULTIBASE_INVALID", { reason: error.message }, error);
    const digit = /[^1-9A-HJ-NP-Za-km-z]/.exec(text)?.[0];
    if (name.startsWith("base58") && digit !== undefined)
      throw failure("MULTIBASE_INVALID", { reason: `Invalid base58 digit ('${digit}')` });
    throw failure("MULTIBASE_INVALID", { reason: `invalid ${name} text: ${shown(text)}` });
  }
}

const shown = (text: string): string => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text);

function decodeLeniently(text: string, { name, values, bits, groups }: Scheme, from: number): Uint8Array {
  const group = name === "base32" ? 8 : 4;
  const last = text.length % group;
  const illegal = (at: number) =>
    failure("MULTIBASE_INVALID", { reason: `illegal ${name} data at input byte ${from + at}` });
  if (name === "base64" && !groups.includes(last)) throw illegal(text.length - last);
  const used = groups.includes(last) ? text.length : text.length - last;
  const bytes = new Uint8Array((used * bits) >> 3);
  let length = 0;
  let bitBuffer = 0;
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const value = values[text.charCodeAt(at)] ?? NO_DIGIT;
    if (value === NO_DIGIT) throw illegal(at);
    if (at >= used) continue;
    bitBuffer = ((bitBuffer << bits) | value) & 0xffff;
    count += bits;
    if (count < 8) continue;
    count -= 8;
    bytes[length++] = (bitBuffer >> count) & 0xff;
  }
  return bytes;
}

/** The last eight digits are the last byte; the first byte may have fewer digits. */
function fromBits(text: string): Uint8Array {
  const whole = text.padStart(Math.ceil(text.length / 8) * 8, "0");
  return Uint8Array.from(whole.match(/.{8}/g) ?? [], (digits) => Number.parseInt(digits, 2));
}

function fromHex(text: string): Uint8Array {
  const bad = /[^0-9a-f]/i.exec(text)?.[0];
  if (bad !== undefined) {
    const code = (bad.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0");
    throw failure("MULTIBASE_INVALID", { reason: `encoding/hex: invalid byte: U+${code} '${bad}'` });
  }
  if (text.length % 2 === 1) throw failure("MULTIBASE_INVALID", { reason: "encoding/hex: odd length hex string" });
  return Buffer.from(text, "hex");
}
