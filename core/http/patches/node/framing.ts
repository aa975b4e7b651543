/** Finds the contents of a body among the bytes of an HTTP/1 connection (RFC 9112, 6 and 7.1). */
import type { IncomingMessage } from "node:http";

/** Follows one body, read by read. */
export interface Framing {
  /**
   * Returns how many bytes of the read belong to the body. The parser must get them before
   * `contents` is called.
   */
  scan(read: Buffer): number;
  /** Returns the contents that the scan found, in one piece. It overwrites the read. */
  contents(read: Buffer): Buffer;
  /** Whether the contents have ended. */
  readonly isOver: boolean;
}

/** Returns the length of the whole body; undefined for a chunked body. */
export function statedLength({ headers }: IncomingMessage): number | undefined {
  const { "content-length": length, "transfer-encoding": encoding } = headers;
  return length === undefined || encoding !== undefined ? undefined : Number(length);
}

/** A body with a stated length. */
export class CountedFraming implements Framing {
  #left: number;
  #found = 0;

  constructor(left: number) {
    this.#left = left;
  }

  get isOver(): boolean {
    return this.#left === 0;
  }

  scan({ length }: Buffer): number {
    this.#found = Math.min(length, this.#left);
    this.#left -= this.#found;
    return this.#found;
  }

  contents(read: Buffer): Buffer {
    return read.subarray(0, this.#found);
  }
}

const CARRIAGE_RETURN = 13;
const LINE_FEED = 10;
const MAX_SIZE_DIGITS = 12;

/**
 * A chunked body. For this reader it ends before the last chunk, and at a line that contains more
 * than a size.
 */
export class ChunkedFraming implements Framing {
  isOver = false;
  /** Bytes of the chunk that are still to come. */
  #left: number;
  #digits = "";
  #expects: "contents" | "end of chunk" | "size" = "contents";
  /** Whether the carriage return of a line end was read, and its line feed comes next. */
  #hasReturned = false;
  /** Contents of the last read: positions and lengths, alternating. */
  #found: number[] = [];

  /** Starts in the middle of a chunk with `left` bytes to come. */
  constructor(left: number) {
    this.#left = left;
  }

  /**
   * Starts at the end of a read. The parser found contents of the lengths `first` in the first byte
   * of the read, and of the lengths `rest` after it. Returns undefined when the read does not show
   * where its chunks are. The position is certain because the first byte is contents and the second
   * cannot be the end of its chunk; lengths alone may also agree where contents look like chunks.
   */
  static behind(read: Buffer, first: readonly number[], rest: readonly number[]): ChunkedFraming | undefined {
    const [more, ...others] = rest;
    if (first.length !== 1 || read[1] === CARRIAGE_RETURN || more === undefined || others.length === 0)
      return undefined;
    const framing = new ChunkedFraming(1 + more);
    const isWhole = framing.scan(read) === read.length && !framing.isOver;
    const found = framing.#found.filter((_, at) => at % 2 === 1);
    const parsed = [1 + more, ...others];
    return isWhole && found.length === parsed.length && found.every((length, at) => length === parsed[at])
      ? framing
      : undefined;
  }

  scan(read: Buffer): number {
    this.#found = [];
    let at = 0;
    while (at < read.length && !this.isOver)
      at = this.#expects === "contents" ? this.#chunk(read, at) : this.#line(read, at);
    return at;
  }

  contents(read: Buffer): Buffer {
    let length = 0;
    for (let at = 0; at < this.#found.length; at += 2) {
      const from = this.#found[at] as number;
      const size = this.#found[at + 1] as number;
      if (from > length) read.copyWithin(length, from, from + size);
      length += size;
    }
    return read.subarray(0, length);
  }

  #chunk(read: Buffer, at: number): number {
    const size = Math.min(this.#left, read.length - at);
    this.#found.push(at, size);
    this.#left -= size;
    if (this.#left === 0) this.#expects = "end of chunk";
    return at + size;
  }

  /** Takes one byte between chunks, or leaves it to the parser. */
  #line(read: Buffer, at: number): number {
    const byte = read[at] as number;
    if (this.#hasReturned) {
      if (byte !== LINE_FEED) return this.#leave(at);
      this.#hasReturned = false;
      this.#expects = this.#expects === "size" ? "contents" : "size";
      return at + 1;
    }
    if (byte === CARRIAGE_RETURN && this.#isLineComplete()) {
      this.#hasReturned = true;
      return at + 1;
    }
    const digit = String.fromCharCode(byte);
    if (this.#expects !== "size" || !/[\da-f]/i.test(digit) || this.#digits.length >= MAX_SIZE_DIGITS)
      return this.#leave(at);
    this.#digits += digit;
    return at + 1;
  }

  #isLineComplete(): boolean {
    if (this.#expects === "end of chunk") return true;
    this.#left = Number.parseInt(this.#digits, 16);
    this.#digits = "";
    return this.#left > 0;
  }

  #leave(at: number): number {
    this.isOver = true;
    return at;
  }
}
