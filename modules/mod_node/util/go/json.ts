/**
 * Reads JSON byte by byte with Go's error texts. It is iterative, so that deep nesting cannot
 * overflow the stack.
 */
import { failure } from "../errors.ts";
import { validUtf8 } from "./text.ts";

export type JsonToken = "{" | "}" | "[" | "]" | "key" | "text" | "number" | "true" | "false" | "null" | "end";

/** Maximum nesting depth. */
const MAX_DEPTH = 10_000;

const quote = 0x22;
const backslash = 0x5c;
const blank = 0x20;
const digit0 = 0x30;
const digit9 = 0x39;

const isBlank = (byte: number) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
const isDigit = (byte: number) => byte >= digit0 && byte <= digit9;

const words: ReadonlyMap<number, "true" | "false" | "null"> = new Map([
  [0x74, "true"],
  [0x66, "false"],
  [0x6e, "null"],
]);

const letters: ReadonlyMap<number, number> = new Map([
  ...['"', "\\", "/"].map((letter) => [letter.charCodeAt(0), letter.charCodeAt(0)] as const),
  ...Object.entries({ b: 8, f: 12, n: 10, r: 13, t: 9 }).map(([letter, code]) => [letter.charCodeAt(0), code] as const),
]);

type State = "value" | "first item" | "first key" | "key" | "after";

/** Yields the tokens of one JSON value. */
export class JsonReader {
  readonly #bytes: Buffer;
  readonly #whole: boolean;
  /** For each open container, whether it is an object. */
  readonly #open: boolean[] = [];
  #at = 0;
  #state: State = "value";
  /** The key or string that was read last: unescaped, in UTF-8. */
  text: Uint8Array = new Uint8Array();
  /** The number that was read last, as written. */
  number = "";

  /**
   * With `document`, nothing may follow the value. With `first`, the reader stops after the value.
   */
  constructor(bytes: Uint8Array, extent: "document" | "first") {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#whole = extent === "document";
  }

  /**
   * Returns the next token, and `end` after the value.
   * @throws NodeError with Go's text
   */
  next(): JsonToken {
    switch (this.#state) {
      case "value":
        return this.#value();
      case "first item":
        return this.#peek() === 0x5d ? this.#close() : this.#value();
      case "first key":
        return this.#peek() === 0x7d ? this.#close() : this.#key();
      case "key":
        return this.#key();
      case "after":
        return this.#after();
    }
  }

  #after(): JsonToken {
    const isObject = this.#open.at(-1);
    if (isObject === undefined) return this.#finish();
    const next = this.#peek();
    if (next === (isObject ? 0x7d : 0x5d)) return this.#close();
    if (next !== 0x2c) this.#unexpected(isObject ? "after object key:value pair" : "after array element");
    this.#at += 1;
    return isObject ? this.#key() : this.#value();
  }

  #finish(): "end" {
    if (!this.#whole) return "end";
    this.#skip();
    if (this.#at < this.#bytes.length) this.#unexpected("after top-level value");
    return "end";
  }

  #close(): "}" | "]" {
    this.#at += 1;
    this.#state = "after";
    return this.#open.pop() ? "}" : "]";
  }

  #key(): "key" {
    if (this.#peek() !== quote) this.#unexpected("looking for beginning of object key string");
    this.#string();
    if (this.#peek() !== 0x3a) this.#unexpected("after object key");
    this.#at += 1;
    this.#state = "value";
    return "key";
  }

  #value(): JsonToken {
    const first = this.#peek();
    if (first === 0x7b || first === 0x5b) return this.#enter(first === 0x7b);
    this.#state = "after";
    if (first === quote) {
      this.#string();
      return "text";
    }
    if (first === 0x2d || isDigit(first)) return this.#number();
    const word = words.get(first);
    if (word === undefined) this.#unexpected("looking for beginning of value");
    return this.#word(word as "true");
  }

  #enter(isObject: boolean): "{" | "[" {
    if (this.#open.length >= MAX_DEPTH) this.#unexpected("exceeded max depth");
    this.#at += 1;
    this.#open.push(isObject);
    this.#state = isObject ? "first key" : "first item";
    return isObject ? "{" : "[";
  }

  #word<W extends "true" | "false" | "null">(word: W): W {
    for (const letter of word) {
      if (this.#here() !== letter.charCodeAt(0)) this.#unexpected(`in literal ${word} (expecting '${letter}')`);
      this.#at += 1;
    }
    return word;
  }

  #number(): "number" {
    const start = this.#at;
    if (this.#bytes[this.#at] === 0x2d) this.#at += 1;
    if (this.#bytes[this.#at] === digit0) this.#at += 1;
    else this.#digits("in numeric literal");
    if (this.#bytes[this.#at] === 0x2e) {
      this.#at += 1;
      this.#digits("after decimal point in numeric literal");
    }
    const exponent = this.#bytes[this.#at];
    if (exponent === 0x65 || exponent === 0x45) {
      this.#at += 1;
      const sign = this.#bytes[this.#at];
      if (sign === 0x2b || sign === 0x2d) this.#at += 1;
      this.#digits("in exponent of numeric literal");
    }
    this.number = this.#bytes.toString("latin1", start, this.#at);
    return "number";
  }

  #digits(context: string): void {
    if (!isDigit(this.#here())) this.#unexpected(context);
    while (isDigit(this.#bytes[this.#at] ?? 0)) this.#at += 1;
  }

  #string(): void {
    const start = ++this.#at;
    let escaped = false;
    for (;;) {
      const byte = this.#bytes[this.#at] ?? this.#cut();
      if (byte === quote) break;
      if (byte < blank) this.#unexpected("in string literal");
      if (byte === backslash) {
        escaped = true;
        this.#escape();
      }
      this.#at += 1;
    }
    const inner = this.#bytes.subarray(start, this.#at);
    this.text = validUtf8(escaped ? unescaped(inner) : inner);
    this.#at += 1;
  }

  /** Moves to the last byte of an escape sequence. */
  #escape(): void {
    this.#at += 1;
    const letter = this.#here();
    if (letters.has(letter)) return;
    if (letter !== 0x75) this.#unexpected("in string escape code");
    for (let read = 0; read < 4; read += 1) {
      this.#at += 1;
      if (hexDigit(this.#here()) < 0) {
        this.#unexpected("in \\u hexadecimal character escape");
      }
    }
  }

  #skip(): void {
    while (isBlank(this.#bytes[this.#at] ?? 0)) this.#at += 1;
  }

  /** Skips blanks and returns the next byte. */
  #peek(): number {
    this.#skip();
    return this.#bytes[this.#at] ?? this.#cut();
  }

  /** Returns the current byte of a token. At the end of a document Go reports a space. */
  #here(): number {
    return this.#bytes[this.#at] ?? (this.#whole ? blank : this.#cut());
  }

  /**
   * Throws the error for input that ends early; its text differs between a stream and a document.
   */
  #cut(): never {
    throw failure("JSON_INVALID", { reason: this.#whole ? "unexpected end of JSON input" : "unexpected EOF" });
  }

  #unexpected(context: string): never {
    throw failure("JSON_INVALID", {
      reason: `invalid character ${quotedByte(this.#bytes[this.#at] ?? blank)} ${context}`,
    });
  }
}

const names: ReadonlyMap<number, string> = new Map([
  [0x27, "\\'"],
  [0x22, '"'],
  [backslash, "\\\\"],
  ...Object.entries({ a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13 }).map(
    ([letter, code]) => [code, `\\${letter}`] as const,
  ),
]);

/** Quotes the character whose code is this byte. */
function quotedByte(byte: number): string {
  const isPlain = (byte >= 0x20 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
  const hex = byte.toString(16);
  const code = byte < 0x80 ? `\\x${hex.padStart(2, "0")}` : `\\u${hex.padStart(4, "0")}`;
  return `'${names.get(byte) ?? (isPlain ? String.fromCharCode(byte) : code)}'`;
}

/** Resolves escape sequences. Unpaired surrogates become U+FFFD. */
function unescaped(bytes: Buffer): Uint8Array {
  // Unescaping never makes a text longer.
  const into = Buffer.allocUnsafe(bytes.length);
  let length = 0;
  for (let at = 0; at < bytes.length; ) {
    const byte = bytes[at] as number;
    if (byte !== backslash) {
      into[length++] = byte;
      at += 1;
      continue;
    }
    const plain = letters.get(bytes[at + 1] as number);
    if (plain !== undefined) {
      into[length++] = plain;
      at += 2;
      continue;
    }
    const code = codeAt(bytes, at);
    const low = code >= 0xd800 && code < 0xdc00 ? codeAt(bytes, at + 6) : -1;
    const paired = low >= 0xdc00 && low < 0xe000;
    if (paired) length = writeLetter(into, length, 0x10000 + (code - 0xd800) * 0x400 + low - 0xdc00);
    else length = writeLetter(into, length, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
    at += paired ? 12 : 6;
  }
  return into.subarray(0, length);
}

/** Returns the code of an escape such as `\\u00e9`; -1 if there is none. */
function codeAt(bytes: Buffer, at: number): number {
  if (bytes[at] !== backslash || bytes[at + 1] !== 0x75) return -1;
  let code = 0;
  for (let digit = at + 2; digit < at + 6; digit += 1) {
    const value = hexDigit(bytes[digit] ?? 0);
    if (value < 0) return -1;
    code = code * 16 + value;
  }
  return code;
}

/** Returns the value of a hexadecimal digit; -1 for any other byte. */
function hexDigit(byte: number): number {
  if (isDigit(byte)) return byte - digit0;
  const value = (byte | 0x20) - 0x61 + 10;
  return value >= 10 && value <= 15 ? value : -1;
}

/** Writes a character in UTF-8 and returns the offset after it. */
function writeLetter(into: Buffer, from: number, code: number): number {
  let at = from;
  if (code < 0x80) {
    into[at++] = code;
    return at;
  }
  if (code < 0x800) into[at++] = 0xc0 | (code >> 6);
  else {
    if (code < 0x10000) into[at++] = 0xe0 | (code >> 12);
    else {
      into[at++] = 0xf0 | (code >> 18);
      into[at++] = 0x80 | ((code >> 12) & 0x3f);
    }
    into[at++] = 0x80 | ((code >> 6) & 0x3f);
  }
  into[at++] = 0x80 | (code & 0x3f);
  return at;
}
