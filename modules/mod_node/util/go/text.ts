/** Text as Go prints it. */
import { isUtf8 } from "node:buffer";

const escapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\f": "\\f",
  "\b": "\\b",
  "\x07": "\\a",
};

/** As `%q`: quotes, backslashes and unprintable characters are escaped. */
export function quote(text: string): string {
  const inner = text.replace(/["\\]|\p{C}|(?! )\p{Z}/gu, (letter) => escapes[letter] ?? codeOf(letter));
  return `"${inner}"`;
}

function codeOf(letter: string): string {
  const code = letter.codePointAt(0) as number;
  const hex = code.toString(16);
  if (code < 0x20) return `\\x${hex.padStart(2, "0")}`;
  return code > 0xffff ? `\\U${hex.padStart(8, "0")}` : `\\u${hex.padStart(4, "0")}`;
}

/** A name in a listing: unprintable characters are escaped, and in that case backslashes as well. */
export function printable(text: string): string {
  return /[\\]|\p{C}|(?! )\p{Z}/u.test(text) ? quote(text).slice(1, -1).replaceAll('\\"', '"') : text;
}

const { rawJSON: rawJson } = JSON as unknown as { rawJSON(text: string): unknown };

const unsafe = /[<>&\u2028\u2029]|\\[\\bf]/g;

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

const escaped = (found: string): string => goEscapes[found] as string;

/**
 * Compact JSON as Go writes it: `<`, `>`, `&` and line separators are escaped, control characters by number except
 * `\n`, `\r`, `\t`. BigInts are integers. Keys keep their order, as those of Go structs do; whoever makes a value for a
 * Go map sorts them.
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

/** Characters of a text in which a call for each that is escaped would take too long. */
const MIN_LONG = 64 * 1024;

/** As replacing `unsafe` does it, byte by byte. */
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
    const taken = byte === backslash ? 2 : 1;
    const written =
      byte === backslash ? controlEscapes[bytes[at + 1] as number] : (markEscapes[byte] ?? separatorAt(bytes, at));
    if (written === undefined) for (let of = 0; of < taken; of += 1) into[length++] = bytes[at + of] as number;
    else for (let of = 0; of < written.length; of += 1) into[length++] = written[of] as number;
    at += written !== undefined && byte === 0xe2 ? 3 : taken;
  }
  parts.push(into.toString("utf8", 0, length));
  return parts.join("");
}

const backslash = 0x5c;
/** By the letter behind a backslash, and by themselves. */
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

/** Bytes that are used as text, like Go's strings. In JSON each invalid byte is `\ufffd`. */
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

/** UTF-8 bytes as a JSON string. */
export function quotedJson(bytes: Uint8Array): string {
  if (isUtf8(bytes)) return goJson(utf8(bytes));
  // No byte becomes more than six.
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
/** How Go writes each ASCII character that it escapes. */
const jsonEscapes: readonly (Uint8Array | undefined)[] = Array.from({ length: 0x80 }, (_, code) => {
  const letter = String.fromCharCode(code);
  const written = goJson(letter).slice(1, -1);
  return written === letter ? undefined : Buffer.from(written);
});
const [lineSeparator, paragraphSeparator] = [Buffer.from("\\u2028"), Buffer.from("\\u2029")];

/** The escape of U+2028 or U+2029, when it is there. */
function separatorAt(bytes: Uint8Array, at: number): Uint8Array | undefined {
  if (bytes[at] !== 0xe2 || bytes[at + 1] !== 0x80) return undefined;
  return bytes[at + 2] === 0xa8 ? lineSeparator : bytes[at + 2] === 0xa9 ? paragraphSeparator : undefined;
}

/** The same bytes with U+FFFD for each byte that is not valid UTF-8. */
export function validUtf8(bytes: Uint8Array): Uint8Array {
  if (isUtf8(bytes)) return bytes;
  // No byte becomes more than three.
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

/** Second bytes that may follow a first one, where not all do. */
const secondBytes: ReadonlyMap<number, readonly [least: number, most: number]> = new Map([
  [0xe0, [0xa0, 0xbf]],
  [0xed, [0x80, 0x9f]],
  [0xf0, [0x90, 0xbf]],
  [0xf4, [0x80, 0x8f]],
]);

/** Bytes of the character at an offset; 0 when it is invalid. */
function letterLength(bytes: Uint8Array, at: number): number {
  const first = bytes[at] as number;
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  // No second byte may make what a shorter character says, a surrogate, or more than U+10FFFF.
  const [least = 0x80, most = 0xbf] = secondBytes.get(first) ?? [];
  const second = bytes[at + 1] ?? 0;
  if (second < least || second > most) return 0;
  for (let next = at + 2; next < at + length; next += 1) if (((bytes[next] ?? 0) & 0xc0) !== 0x80) return 0;
  return length;
}
