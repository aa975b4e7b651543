import type { MultipartLimits } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import {
  DEFAULT_MAX_HEADER_BYTES,
  DEFAULT_MAX_PARTS,
  headerText,
  invalidMultipart,
  type PartHeaders,
  type Piece,
} from "./multipart_parser.ts";
import { pieceParser } from "./patches/formidable/content_skipper.ts";

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const MAX_PROLOGUE_LINE = 64 * 1024;
/** Blanks that may follow a boundary on its line. */
const MAX_PADDING = 256;
const none = Buffer.alloc(0);

/** What turns chunks into pieces. */
export interface BodyParser {
  /** Parsed and not yet taken. */
  readonly pieces: Piece[];
  /** The closing boundary has been seen. */
  readonly complete: boolean;
  feed(chunk: Buffer): void;
}

/**
 * Reads up to the first boundary, and leaves the rest to the parser that the end of its line calls for: some clients
 * end lines with a bare line feed, and keep to it.
 */
export class OpeningParser implements BodyParser {
  readonly #boundary: string;
  readonly #dashes: Buffer;
  readonly #limits: MultipartLimits;
  #parser: BodyParser | undefined;
  #held: Buffer = none;

  constructor(boundary: string, limits: MultipartLimits) {
    this.#boundary = boundary;
    this.#dashes = Buffer.from(`--${boundary}`);
    this.#limits = limits;
  }

  get pieces(): Piece[] {
    return this.#parser?.pieces ?? [];
  }

  get complete(): boolean {
    return this.#parser?.complete === true;
  }

  feed(chunk: Buffer): void {
    const bytes = this.#parser === undefined ? this.#open(chunk) : chunk;
    this.#parser?.feed(bytes);
  }

  /** Looks for the first boundary; returns the bytes from there on. */
  #open(chunk: Buffer): Buffer {
    let held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    for (;;) {
      this.#parser = this.#opened(held);
      const end = this.#parser === undefined ? held.indexOf(LINE_FEED) : -1;
      if (end < 0) break;
      held = held.subarray(end + 1);
    }
    if (this.#parser === undefined && held.length > MAX_PROLOGUE_LINE) {
      throw invalidMultipart("it does not begin with a boundary");
    }
    // The chunk may serve again by the time the next one comes.
    this.#held = this.#parser === undefined ? Buffer.from(held) : none;
    return held;
  }

  /** The parser, when the line that is held is a boundary; a longer line that begins like one is none. */
  #opened(held: Buffer): BodyParser | undefined {
    const { length } = this.#dashes;
    if (held.length <= length || !held.subarray(0, length).equals(this.#dashes)) return undefined;
    const rest = held.toString("latin1", length, length + MAX_PADDING);
    if (/^(--|\r\n)/.test(rest)) return pieceParser(this.#boundary, this.#limits);
    return /^[ \t]*\n/.test(rest) ? new LineFeedParser(this.#dashes, this.#limits) : undefined;
  }
}

/** Parts whose lines end with a bare line feed. */
class LineFeedParser implements BodyParser {
  readonly pieces: Piece[] = [];
  complete = false;
  readonly #delimiter: Buffer;
  readonly #limits: MultipartLimits;
  /** A line feed is put before the first boundary, so that all are alike. */
  #held: Buffer = Buffer.from("\n");
  #headers: PartHeaders | undefined;
  #inPart = false;
  #parts = 0;
  #partBytes = 0;
  #headerBytes = 0;

  constructor(dashes: Buffer, limits: MultipartLimits) {
    this.#delimiter = Buffer.concat([Buffer.from("\n"), dashes]);
    this.#limits = limits;
  }

  feed(chunk: Buffer): void {
    this.#held = Buffer.concat([this.#held, chunk]);
    while (!this.complete && (this.#headers === undefined ? this.#content() : this.#header(this.#headers)));
  }

  /** Takes in bytes up to the next boundary; true when there is more to do with what is held. */
  #content(): boolean {
    const { length } = this.#delimiter;
    for (let at = this.#held.indexOf(this.#delimiter); at >= 0; at = this.#held.indexOf(this.#delimiter, at + 1)) {
      const rest = this.#held.toString("latin1", at + length, at + length + MAX_PADDING);
      const meaning = meaningOf(rest);
      // Content that only looks like a boundary stays in one piece with what is around it.
      if (meaning === "data") continue;
      this.#give(at);
      if (meaning === "part") this.#begin(length + rest.indexOf("\n") + 1);
      if (meaning === "end") this.#end();
      return meaning === "part";
    }
    this.#give(Math.max(0, this.#held.length - length + 1));
    return false;
  }

  #end(): void {
    if (this.#inPart) this.pieces.push({ kind: "end" });
    this.complete = true;
  }

  #begin(from: number): void {
    if (this.#inPart) this.pieces.push({ kind: "end" });
    const { parts = DEFAULT_MAX_PARTS } = this.#limits;
    this.#parts += 1;
    if (this.#parts > parts) throw invalidMultipart(`it has more than ${parts} parts`);
    this.#held = this.#held.subarray(from);
    this.#headers = Object.create(null) as PartHeaders;
    this.#headerBytes = 0;
    this.#partBytes = 0;
    this.#inPart = true;
  }

  /** Takes in one line of a header; true when there was one. */
  #header(headers: PartHeaders): boolean {
    const end = this.#held.indexOf(LINE_FEED);
    const { header_bytes: most = DEFAULT_MAX_HEADER_BYTES } = this.#limits;
    if (this.#headerBytes + (end < 0 ? this.#held.length : end) > most) {
      throw invalidMultipart(`the header of part ${this.#parts} is larger than ${most} bytes`);
    }
    if (end < 0) return false;
    this.#headerBytes += end;
    const line = this.#held.subarray(0, this.#held[end - 1] === CARRIAGE_RETURN ? end - 1 : end);
    if (line.length === 0) {
      this.pieces.push({ kind: "part", headers });
      this.#headers = undefined;
      // The line feed stays: it may be that of a boundary, when the part is empty.
      this.#held = this.#held.subarray(end);
      this.#skip = true;
      return true;
    }
    const colon = line.indexOf(":");
    if (colon < 1) throw invalidMultipart("a part is malformed");
    const name = line.toString("latin1", 0, colon).trim().toLowerCase().replaceAll("-", "_");
    const value = headerText(line.subarray(colon + 1)).trim();
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
    this.#held = this.#held.subarray(end + 1);
    return true;
  }

  /** The first byte in the buffer ends the header, and is no content. */
  #skip = true;

  /** Hands out the first bytes that are held. */
  #give(length: number): void {
    const skipped = this.#skip && length > 0 ? 1 : 0;
    if (skipped > 0) this.#skip = false;
    const bytes = this.#held.subarray(skipped, length);
    this.#held = this.#held.subarray(length);
    if (!this.#inPart || bytes.length === 0) return;
    this.#partBytes += bytes.length;
    const { part_bytes: most = Number.POSITIVE_INFINITY } = this.#limits;
    if (this.#partBytes > most) throw new ModhostError("BODY_TOO_LARGE", { limit: most });
    this.pieces.push({ kind: "data", bytes });
  }
}

/** What a line that begins like a boundary is, by what follows there; undefined when that has not all come. */
function meaningOf(rest: string): "part" | "end" | "data" | undefined {
  if (rest.startsWith("--")) return "end";
  if (/^[ \t]*\n/.test(rest)) return "part";
  return /^(-|[ \t]*)$/.test(rest) && rest.length < MAX_PADDING ? undefined : "data";
}
