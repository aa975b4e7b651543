/**
 * Encodes and decodes multibase text in any base of go-multibase 0.2.0. Long inputs are processed
 * in steps.
 */
import { atOnce, type Steps } from "../../util/async/steps.ts";
import { failure } from "../../util/errors.ts";
import { type Base, laterBaseOf } from "./multibase.ts";
import { decodePiece } from "./multibase_decode.ts";

/**
 * Number of bytes, and of characters, per step. Both are a multiple of the group length of every
 * base that is a power of two.
 */
const STEP_BYTES = 15 * 256;
const STEP_CHARACTERS = 8 * 1024;

/** Maximum length in bytes of the text for one byte. */
const mostOf = ({ name }: Base): number => (name === "base2" ? 8 : 4);

/**
 * In these bases, digits stand for bits or for bytes, so that pieces can be encoded and decoded
 * independently. The encoders of the other bases limit the length themselves.
 */
const isByPiece = ({ name }: Base): boolean => /^base(?:2|16|32|64|256)(?!\d)/.test(name);

/**
 * Returns the text with its prefix, as UTF-8. The `identity` base copies the bytes, which need not
 * be text.
 *
 * @throws NodeError if there are more bytes than the base allows
 */
export function* encodeSteps(base: Base, bytes: Uint8Array): Steps<Uint8Array> {
  const { name, prefix, encoder } = base;
  if (name === "identity") return Buffer.concat([Buffer.from(prefix), bytes]);
  if (!isByPiece(base)) return Buffer.from(encoder.encode(bytes));
  const text = Buffer.allocUnsafe(prefix.length * 4 + (bytes.length + STEP_BYTES) * mostOf(base));
  let length = text.write(prefix);
  for (let at = 0; at < bytes.length; at += STEP_BYTES) {
    const piece = encoder.encode(bytes.subarray(at, at + STEP_BYTES));
    length += text.write(piece.slice(prefix.length), length);
    yield;
  }
  return text.subarray(0, length);
}

/** Decodes a text with its prefix. @throws NodeError with the error text of go-multibase */
export function* decodeSteps(text: string): Steps<Uint8Array> {
  if (text === "") throw failure("MULTIBASE_INVALID", { reason: "cannot decode multibase for zero length string" });
  const base = laterBaseOf(text);
  if (base === undefined) throw failure("MULTIBASE_INVALID", { reason: "selected encoding not supported" });
  const { name, prefix } = base;
  const isPadded = name.includes("pad");
  const padding = /^base(?:32|64)/.test(name) && !isPadded ? text.indexOf("=") : -1;
  if (padding > 0)
    throw failure("MULTIBASE_INVALID", { reason: `illegal ${name.slice(0, 6)} data at input byte ${padding - 1}` });
  const rest = text.slice(prefix.length);
  if (!isByPiece(base)) return decodePiece(base, rest, 0);
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const piece of piecesOf(base, isPadded ? yield* withoutPadding(rest) : rest)) {
    pieces.push(decodePiece(base, piece, at));
    at += piece.length;
    yield;
  }
  return Buffer.concat(pieces);
}

/** Same as `decodeSteps`, in one go: for texts that are known to be short. @throws NodeError */
export const decodeText = (text: string): Uint8Array => atOnce(decodeSteps(text));

function* withoutPadding(text: string): Steps<string> {
  let end = text.length;
  for (; end > 0 && "=\r\n".includes(text.charAt(end - 1)); end -= 1) if (end % STEP_CHARACTERS === 0) yield;
  return text.slice(0, end);
}

/**
 * Splits a text into pieces of complete groups. In base2 the groups are counted from the end; in
 * other bases the last piece takes the incomplete group.
 */
function* piecesOf({ name }: Base, text: string): Generator<string, void, undefined> {
  const skipsBreaks = /^base(?:32|64)/.test(name);
  let pending = "";
  for (let at = 0; at < text.length; ) {
    const rest = text.length - at;
    let end = at + (name === "base2" ? rest % STEP_CHARACTERS || STEP_CHARACTERS : STEP_CHARACTERS);
    if (isHighSurrogate(text.charCodeAt(end - 1))) end += 1;
    const part = text.slice(at, end);
    at = end;
    // Go's base32 and base64 decoders skip line breaks.
    pending += skipsBreaks ? part.replace(/[\r\n]/g, "") : part;
    const whole = name === "base2" || name === "base256emoji" ? pending.length : pending.length - (pending.length % 8);
    if (whole > 0) yield pending.slice(0, whole);
    pending = pending.slice(whole);
  }
  if (pending !== "") yield pending;
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
