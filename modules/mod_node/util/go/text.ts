/** Formats text as Go does. */
import { isUtf8 } from "node:buffer";

const quoted = /["\\]|\p{C}|(?! )\p{Z}/u;

/** Quotes a text like Go's `%q`, escaping quotes, backslashes and unprintable characters. */
export function quote(text: string): string {
  return `"${quoted.test(text) ? escapedText(text) : text}"`;
}

const codeUnits = (text: string): Uint16Array => Uint16Array.from(text, (letter) => letter.charCodeAt(0));

const hexDigits = codeUnits("0123456789abcdef");
const shortEscapes: readonly (Uint16Array | undefined)[] = Object.assign(new Array<Uint16Array | undefined>(128), {
  7: codeUnits("\\a"),
  8: codeUnits("\\b"),
  9: codeUnits("\\t"),
  10: codeUnits("\\n"),
  11: codeUnits("\\v"),
  12: codeUnits("\\f"),
  13: codeUnits("\\r"),
  34: codeUnits('\\"'),
  92: codeUnits("\\\\"),
});
const [hexEscape, shortUnicodeEscape, longUnicodeEscape] = ["\\x", "\\u", "\\U"].map(codeUnits) as [
  Uint16Array,
  Uint16Array,
  Uint16Array,
];

/**
 * Number of code units to buffer before they become a string; converting each character by itself
 * would be slow.
 */
const MAX_UNITS = 64 * 1024;
const LONGEST_ESCAPE = 10;

function escapedText(text: string): string {
  const into = new Uint16Array(Math.min(text.length * LONGEST_ESCAPE, MAX_UNITS + LONGEST_ESCAPE));
  const bytes = Buffer.from(into.buffer);
  let escaped = "";
  let length = 0;
  for (let at = 0; at < text.length; ) {
    const code = text.codePointAt(at) as number;
    if (isQuoted(code)) length = writeEscape(into, length, code);
    else {
      into[length++] = text.charCodeAt(at);
      if (code > 0xffff) into[length++] = text.charCodeAt(at + 1);
    }
    at += code > 0xffff ? 2 : 1;
    if (length < MAX_UNITS) continue;
    escaped += bytes.toString("utf16le", 0, 2 * length);
    length = 0;
  }
  return escaped + bytes.toString("utf16le", 0, 2 * length);
}

/** Caches by character whether it is escaped: 1 if it is, 2 if not, 0 if not yet known. */
let known: Uint8Array | undefined;

function isQuoted(code: number): boolean {
  known ??= new Uint8Array(0x110000);
  return (known[code] ||= quoted.test(String.fromCodePoint(code)) ? 1 : 2) === 1;
}

function writeEscape(into: Uint16Array, at: number, code: number): number {
  const short = shortEscapes[code];
  if (short !== undefined) return write(into, at, short);
  // A lone surrogate represents a byte that is not UTF-8 (see `byteText`).
  if (code >= 0xdc80 && code <= 0xdcff) return write(into, at, Uint16Array.of(...hexEscape, ...hexByte(code & 0xff)));
  const digits = code < 0x20 ? 2 : code > 0xffff ? 8 : 4;
  let next = write(into, at, digits === 2 ? hexEscape : digits === 8 ? longUnicodeEscape : shortUnicodeEscape);
  for (let shift = 4 * (digits - 1); shift >= 0; shift -= 4) into[next++] = hexDigits[(code >>> shift) & 15] as number;
  return next;
}

const hexByte = (byte: number) => [hexDigits[byte >> 4] as number, hexDigits[byte & 15] as number];

function write(into: Uint16Array, at: number, units: Uint16Array): number {
  let next = at;
  for (let of = 0; of < units.length; of += 1) into[next++] = units[of] as number;
  return next;
}

/**
 * Returns a name for a listing. If it contains unprintable characters, these and its backslashes
 * are escaped. Bytes that are not UTF-8 do not count as unprintable.
 */
export function printable(text: string): string {
  return /[\\]|(?!\p{Cs})\p{C}|(?! )\p{Z}/u.test(text) ? quote(text).slice(1, -1).replaceAll('\\"', '"') : text;
}

const { rawJSON: rawJson } = JSON as unknown as { rawJSON(text: string): unknown };

/** Lone surrogates represent bytes that are not UTF-8, or are invalid themselves. */
const unsafe = /[<>&\u2028\u2029]|\\[\\bf]|\\ud[89a-f][0-9a-f]{2}/g;

const goEscapes: Readonly<Record<string, string>> = {
  "<": "\\u003c",
  ">": "\\u003e",
  "&": "\\u0026",
  "\u2028": "\\u2028",
  "\u2029": "\\u2029",
  "\\\\": "\\\\",
  "\\b": "\\u0008",
  "\\f": "\\u000c",
};

const escaped = (found: string): string => goEscapes[found] ?? "\\ufffd";

/**
 * Returns compact JSON as Go writes it: `<`, `>`, `&` and line separators are escaped, control
 * characters except `\n`, `\r` and `\t` by number. BigInts become integers. Keys keep their order,
 * as in Go structs; for a Go map, the caller sorts them.
 */
export function goJson(value: unknown): string {
  if (value instanceof JsonText) return value.text;
  let text: string;
  try {
    text = JSON.stringify(value) ?? "null";
  } catch (error) {
    if (!(error instanceof TypeError) || !/BigInt/.test(error.message)) throw error;
    text = JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? rawJson(String(each)) : each));
  }
  return text.length < MIN_LONG ? text.replace(unsafe, escaped) : escapedLong(text);
}

/** Matches strings that need no escaping. */
const plain = /^[ !#-%'-;=?-[\]-~]*$/;

/** Same result as `goJson` of a string, but faster for many short strings. */
export const goJsonText = (text: string): string => (plain.test(text) ? `"${text}"` : goJson(text));

/** Length from which `escapedLong` is faster than a callback per escaped character. */
const MIN_LONG = 64 * 1024;

/** Same result as replacing `unsafe` by a regular expression, byte by byte. */
function escapedLong(text: string): string {
  if (text.search(unsafe) < 0) return text;
  const bytes = Buffer.from(text);
  const into = Buffer.allocUnsafe(MIN_LONG + 2 * ESCAPED_LENGTH);
  const parts: string[] = [];
  let length = 0;
  for (let at = 0; at < bytes.length; ) {
    const byte = bytes[at] as number;
    if (length >= MIN_LONG && (byte & 0xc0) !== 0x80) {
      parts.push(into.toString("utf8", 0, length));
      length = 0;
    }
    const isLone = byte === backslash && bytes[at + 1] === 0x75 && bytes[at + 2] === 0x64;
    const taken = isLone ? ESCAPED_LENGTH : byte === backslash ? 2 : 1;
    const written = isLone
      ? invalid
      : byte === backslash
        ? controlEscapes[bytes[at + 1] as number]
        : (markEscapes[byte] ?? separatorAt(bytes, at));
    if (written === undefined) for (let of = 0; of < taken; of += 1) into[length++] = bytes[at + of] as number;
    else for (let of = 0; of < written.length; of += 1) into[length++] = written[of] as number;
    at += written !== undefined && byte === 0xe2 ? 3 : taken;
  }
  parts.push(into.toString("utf8", 0, length));
  return parts.join("");
}

const backslash = 0x5c;
/** Escapes of control characters: a letter behind a backslash. */
const controlEscapes: Readonly<Record<number, Uint8Array>> = {
  98: Buffer.from("\\u0008"),
  102: Buffer.from("\\u000c"),
};
const markEscapes: readonly (Uint8Array | undefined)[] = Array.from({ length: 256 }, (_, code) => {
  const found = code < 0x80 ? goEscapes[String.fromCharCode(code)] : undefined;
  return found === undefined ? undefined : Buffer.from(found);
});

/** A value that is JSON text already. It cannot be part of another value. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Bytes that are used as text, like Go's strings. In JSON, each invalid byte becomes `\ufffd`. */
export class GoText {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  toString(): string {
    return Buffer.from(validUtf8(this.bytes)).toString();
  }

  toJSON(): unknown {
    return rawJson(quotedJson(this.bytes));
  }
}

/** Returns UTF-8 bytes as a JSON string. */
export function quotedJson(bytes: Uint8Array): string {
  if (isUtf8(bytes)) return goJson(utf8(bytes));
  // A byte becomes at most six.
  const into = Buffer.allocUnsafe(bytes.length * ESCAPED_LENGTH + 2);
  into[0] = 0x22;
  let length = 1;
  for (let at = 0; at < bytes.length; ) {
    const letter = letterLength(bytes, at);
    const byte = bytes[at] as number;
    const written = letter === 0 ? invalid : letter === 1 ? jsonEscapes[byte] : separatorAt(bytes, at);
    if (written === undefined) for (let of = 0; of < letter; of += 1) into[length++] = bytes[at + of] as number;
    else for (let of = 0; of < written.length; of += 1) into[length++] = written[of] as number;
    at += letter || 1;
  }
  into[length++] = 0x22;
  return into.toString("utf8", 0, length);
}

const ESCAPED_LENGTH = 6;
const invalid = Buffer.from("\\ufffd");
/** Go's escape of each ASCII character that it escapes. */
const jsonEscapes: readonly (Uint8Array | undefined)[] = Array.from({ length: 0x80 }, (_, code) => {
  const letter = String.fromCharCode(code);
  const written = goJson(letter).slice(1, -1);
  return written === letter ? undefined : Buffer.from(written);
});
const lineSeparator = Buffer.from("\\u2028");
const paragraphSeparator = Buffer.from("\\u2029");

/** Returns the escape of U+2028 or U+2029 if one of them is at this offset. */
function separatorAt(bytes: Uint8Array, at: number): Uint8Array | undefined {
  if (bytes[at] !== 0xe2 || bytes[at + 1] !== 0x80) return undefined;
  return bytes[at + 2] === 0xa8 ? lineSeparator : bytes[at + 2] === 0xa9 ? paragraphSeparator : undefined;
}

/** Returns the bytes with U+FFFD in place of each byte that is not valid UTF-8. */
export function validUtf8(bytes: Uint8Array): Uint8Array {
  if (isUtf8(bytes)) return bytes;
  // A byte becomes at most three.
  const into = Buffer.allocUnsafe(bytes.length * 3);
  let length = 0;
  for (let at = 0; at < bytes.length; ) {
    const letter = letterLength(bytes, at);
    if (letter === 0) {
      into[length++] = 0xef;
      into[length++] = 0xbf;
      into[length++] = 0xbd;
      at += 1;
    }
    for (let left = letter; left > 0; left -= 1) into[length++] = bytes[at++] as number;
  }
  return into.subarray(0, length);
}

const utf8 = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();

/** For these first bytes, only this range of second bytes is valid. */
const secondBytes: ReadonlyMap<number, readonly [least: number, most: number]> = new Map([
  [0xe0, [0xa0, 0xbf]],
  [0xed, [0x80, 0x9f]],
  [0xf0, [0x90, 0xbf]],
  [0xf4, [0x80, 0x8f]],
]);

/** Returns the length of the character at an offset, in bytes; 0 if it is invalid. */
export function letterLength(bytes: Uint8Array, at: number): number {
  const first = bytes[at] as number;
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  // Excludes overlong encodings, surrogates and code points above U+10FFFF.
  const [least = 0x80, most = 0xbf] = secondBytes.get(first) ?? [];
  const second = bytes[at + 1] ?? 0;
  if (second < least || second > most) return 0;
  for (let next = at + 2; next < at + length; next += 1) if (((bytes[next] ?? 0) & 0xc0) !== 0x80) return 0;
  return length;
}
