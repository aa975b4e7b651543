/**
 * Finds the contents of parts, and removes blanks after boundaries and unfolds headers, which RFC
 * 2046 allows and formidable refuses.
 */
import type { MultipartLimits } from "../../../types.ts";
import { type Piece, PieceParser } from "./parser.ts";

const TAB = 9;
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const HYPHEN = 45;
const LINE_END = "\r\n";
/** Blanks that may follow a boundary on its line. */
export const MAX_PADDING = 256;
const none = Buffer.alloc(0);

const isBlank = (byte: number | undefined): boolean => byte === SPACE || byte === TAB;

/**
 * The next bytes: those up to `content` are contents of a part, those up to `to` are passed on, and
 * those from there to `from` are dropped. `isOver`: more bytes must arrive first.
 */
interface Step {
  readonly content?: number;
  readonly to: number;
  readonly from: number;
  readonly isOver: boolean;
}

const settled = (to: number, from = to): Step => ({ to, from, isOver: false });
const waiting = (to: number): Step => ({ to, from: to, isOver: true });

/**
 * Passes contents to the parser unchanged, found by one search for the boundary. The rest goes to
 * formidable, without blanks after boundaries and with folded header lines joined.
 */
export class LineParser {
  readonly #parser: PieceParser;
  readonly #delimiter: Buffer;
  #next: (bytes: Buffer, at: number) => Step;
  #pending: Buffer = none;

  /** The first chunk begins with the first boundary. */
  constructor(boundary: string, limits: MultipartLimits) {
    this.#parser = new PieceParser(boundary, limits);
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
    this.#next = (bytes) => this.#boundary(bytes, 0, this.#delimiter.length - LINE_END.length);
  }

  get pieces(): Piece[] {
    return this.#parser.pieces;
  }

  get complete(): boolean {
    return this.#parser.complete;
  }

  feed(chunk: Buffer): void {
    const bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    let begin = 0;
    let at = 0;
    for (;;) {
      const { content = at, to, from, isOver } = this.#next(bytes, at);
      if (content > at) {
        if (at > begin) this.#parser.feed(bytes.subarray(begin, at));
        this.#parser.content(bytes.subarray(at, content));
        begin = content;
      }
      if (to < from || isOver || from >= bytes.length) {
        if (to > begin) this.#parser.feed(bytes.subarray(begin, to));
        begin = from;
      }
      at = from;
      if (isOver || at >= bytes.length) break;
    }
    // The memory of the chunk may be reused before the next chunk arrives.
    this.#pending = at < bytes.length ? Buffer.from(bytes.subarray(at)) : none;
  }

  readonly #content = (bytes: Buffer, from: number): Step => {
    const delimiter = this.#delimiter;
    for (let at = bytes.indexOf(delimiter, from); at >= 0; at = bytes.indexOf(delimiter, at + 1)) {
      const step = this.#boundary(bytes, at, at + delimiter.length);
      if (step.isOver || this.#next !== this.#content) return { ...step, content: at };
    }
    const end = beginOf(delimiter, bytes, from);
    return { ...waiting(end), content: end };
  };

  /**
   * Handles a possible boundary from `at` to `end`: the beginning of a part, the last boundary, or
   * content that only looks like one.
   */
  #boundary(bytes: Buffer, at: number, end: number): Step {
    if (bytes[end] === HYPHEN) {
      if (end + 1 >= bytes.length) return waiting(at);
      if (bytes[end + 1] === HYPHEN) this.#next = (all) => settled(all.length);
      return settled(end);
    }
    let padded = end;
    while (isBlank(bytes[padded]) && padded - end < MAX_PADDING) padded += 1;
    if (padded + 1 >= bytes.length && (padded >= bytes.length || bytes[padded] === CARRIAGE_RETURN)) return waiting(at);
    if (bytes[padded] !== CARRIAGE_RETURN || bytes[padded + 1] !== LINE_FEED) return settled(end);
    this.#next = this.#head;
    return settled(end, padded);
  }

  /**
   * Handles the end of a line, after which comes another header line, a continuation of this one,
   * or the end of the header.
   */
  readonly #head = (bytes: Buffer, at: number): Step => {
    const next = at + LINE_END.length;
    if (next >= bytes.length) return waiting(at);
    if (isBlank(bytes[next]) && !this.#isFirst) return this.#line(bytes, next, at);
    if (bytes[next] !== CARRIAGE_RETURN) return this.#line(bytes, next);
    if (next + 1 >= bytes.length) return waiting(at);
    this.#isFirst = true;
    this.#next = this.#content;
    return settled(next + LINE_END.length);
  };

  /** Whether no line of the header has arrived yet. */
  #isFirst = true;

  /**
   * Continues to the end of the line that begins at `from`. `leftOut`: start of the bytes before it
   * that are dropped.
   */
  #line(bytes: Buffer, from: number, leftOut = from): Step {
    if (leftOut < from) {
      this.#next = this.#rest;
      return settled(leftOut, from);
    }
    return this.#rest(bytes, from);
  }

  readonly #rest = (bytes: Buffer, from: number): Step => {
    this.#isFirst = false;
    const end = bytes.indexOf(LINE_END, from);
    this.#next = end < 0 ? this.#rest : this.#head;
    if (end >= 0) return settled(end);
    return waiting(bytes.at(-1) === CARRIAGE_RETURN ? bytes.length - 1 : bytes.length);
  };
}

/** Returns where the last bytes may begin a delimiter; the length of `bytes` when they do not. */
function beginOf(delimiter: Buffer, bytes: Buffer, from: number): number {
  const first = Math.max(from, bytes.length - delimiter.length + 1);
  for (let at = bytes.indexOf(CARRIAGE_RETURN, first); at >= 0; at = bytes.indexOf(CARRIAGE_RETURN, at + 1)) {
    if (at + 1 < bytes.length && bytes[at + 1] !== LINE_FEED) continue;
    const rest = bytes.subarray(at);
    if (delimiter.subarray(0, rest.length).equals(rest)) return at;
  }
  return bytes.length;
}
