/**
 * Bytes as multibase text of any base that later versions of the reference know, and back: in
 * steps, as there may be many.
 */
import { atOnce, type Steps } from "../../util/async/steps.ts";
import { failure } from "../../util/errors.ts";
import { type Base, laterBaseOf } from "./multibase.ts";
import { decodePiece } from "./multibase_decode.ts";

/**
 * Bytes, and characters, of one step: both are whole groups of every base whose digits are so many
 * bits.
 */
const STEP_BYTES = 15 * 256;
const STEP_CHARACTERS = 8 * 1024;

/** A byte is at most so many bytes of text. */
const mostOf = ({ name }: Base): number => (name === "base2" ? 8 : 4);

/**
 * Digits are bits, or bytes: pieces can be written and read one by one. Others are bounded where
 * they are made.
 */
const isByPiece = ({ name }: Base): boolean => /^base(?:2|16|32|64|256)(?!\d)/.test(name);

/**
 * The text as UTF-8, with its prefix. That of `identity` need not be text. @throws NodeError for
 * more than the base is for
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

/** The bytes of a text with its prefix. @throws NodeError in the words of the reference */
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

/** As `decodeSteps`, in one go: for texts that are known to be short. @throws NodeError */
export const decodeText = (text: string): Uint8Array => atOnce(decodeSteps(text));

function* withoutPadding(text: string): Steps<string> {
  let end = text.length;
  for (; end > 0 && "=\r\n".includes(text.charAt(end - 1)); end -= 1) if (end % STEP_CHARACTERS === 0) yield;
  return text.slice(0, end);
}

/**
 * Whole groups; those of base2 are counted from the end, and what is left in other bases is in the
 * last piece.
 */
function* piecesOf({ name }: Base, text: string): Generator<string, void, undefined> {
  const skipsBreaks = /^base(?:32|64)/.test(name);
  let held = "";
  for (let at = 0; at < text.length; ) {
    const rest = text.length - at;
    let end = at + (name === "base2" ? rest % STEP_CHARACTERS || STEP_CHARACTERS : STEP_CHARACTERS);
    if (isHighSurrogate(text.charCodeAt(end - 1))) end += 1;
    const part = text.slice(at, end);
    at = end;
    // As Go's decoders of these do.
    held += skipsBreaks ? part.replace(/[\r\n]/g, "") : part;
    const whole = name === "base2" || name === "base256emoji" ? held.length : held.length - (held.length % 8);
    if (whole > 0) yield held.slice(0, whole);
    held = held.slice(whole);
  }
  if (held !== "") yield held;
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
