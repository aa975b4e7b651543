import type { MultipartLimits } from "../../../types.ts";
import { ModhostError } from "../../../util/errors.ts";
import { LineParser, MAX_PADDING } from "./lines.ts";
import {
  DEFAULT_MAX_HEADER_BYTES,
  DEFAULT_MAX_PARTS,
  headerText,
  invalidMultipart,
  type PartHeaders,
  type Piece,
} from "./parser.ts";

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const MAX_PROLOGUE_LINE = 64 * 1024;
const none = Buffer.alloc(0);

/** Parses chunks into pieces. */
export interface BodyParser {
  /** Parsed pieces that nobody has taken yet. */
  readonly pieces: Piece[];
  /** The closing boundary has been seen. */
  readonly complete: boolean;
  feed(chunk: Buffer): void;
}

/**
 * Reads up to the first boundary. The line end after it decides which parser reads the rest: some
 * clients end all lines with a bare line feed.
 */
export class OpeningParser implements BodyParser {
  readonly #boundary: string;
  readonly #dashes: Buffer;
  readonly #limits: MultipartLimits;
  #parser: BodyParser | undefined;
  #pending: Buffer = none;

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
    let pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    for (;;) {
      this.#parser = this.#opened(pending);
      const end = this.#parser === undefined ? pending.indexOf(LINE_FEED) : -1;
      if (end < 0) break;
      pending = pending.subarray(end + 1);
    }
    if (this.#parser === undefined && pending.length > MAX_PROLOGUE_LINE) {
      throw invalidMultipart("it does not begin with a boundary");
    }
    // The memory of the chunk may be reused before the next chunk arrives.
    this.#pending = this.#parser === undefined ? Buffer.from(pending) : none;
    return pending;
  }

  /**
   * Returns the parser when the pending line is a boundary. A longer line that begins like one is
   * not.
   */
  #opened(pending: Buffer): BodyParser | undefined {
    const { length } = this.#dashes;
    if (pending.length <= length || !pending.subarray(0, length).equals(this.#dashes)) return undefined;
    const rest = pending.toString("latin1", length, length + MAX_PADDING);
    if (/^(--|[ \t]*\r\n)/.test(rest)) return new LineParser(this.#boundary, this.#limits);
    return /^[ \t]*\n/.test(rest) ? new LineFeedParser(this.#dashes, this.#limits) : undefined;
  }
}

/** Parses parts whose lines end with a bare line feed. */
class LineFeedParser implements BodyParser {
  readonly pieces: Piece[] = [];
  complete = false;
  readonly #delimiter: Buffer;
  readonly #limits: MultipartLimits;
  /** Begins with a line feed, so that the first boundary looks like all others. */
  #pending: Buffer = Buffer.from("\n");
  #headers: PartHeaders | undefined;
  /** The name of the previous header, which a folded line continues. */
  #name: string | undefined;
  #inPart = false;
  #parts = 0;
  #partBytes = 0;
  #headerBytes = 0;

  constructor(dashes: Buffer, limits: MultipartLimits) {
    this.#delimiter = Buffer.concat([Buffer.from("\n"), dashes]);
    this.#limits = limits;
  }

  feed(chunk: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    while (!this.complete && (this.#headers === undefined ? this.#content() : this.#header(this.#headers)));
  }

  /**
   * Parses bytes up to the next boundary. Returns true when another step is possible with the
   * pending bytes.
   */
  #content(): boolean {
    const { length } = this.#delimiter;
    for (
      let at = this.#pending.indexOf(this.#delimiter);
      at >= 0;
      at = this.#pending.indexOf(this.#delimiter, at + 1)
    ) {
      const rest = this.#pending.toString("latin1", at + length, at + length + MAX_PADDING);
      const meaning = meaningOf(rest);
      // Content that only looks like a boundary is not split.
      if (meaning === "data") continue;
      this.#give(at);
      if (meaning === "part") this.#begin(length + rest.indexOf("\n") + 1);
      if (meaning === "end") this.#end();
      return meaning === "part";
    }
    this.#give(Math.max(0, this.#pending.length - length + 1));
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
    this.#pending = this.#pending.subarray(from);
    this.#headers = Object.create(null) as PartHeaders;
    this.#name = undefined;
    this.#headerBytes = 0;
    this.#partBytes = 0;
    this.#inPart = true;
  }

  /** Parses one line of a header. Returns false when no whole line has arrived. */
  #header(headers: PartHeaders): boolean {
    const end = this.#pending.indexOf(LINE_FEED);
    const { header_bytes: most = DEFAULT_MAX_HEADER_BYTES } = this.#limits;
    if (this.#headerBytes + (end < 0 ? this.#pending.length : end) > most) {
      throw invalidMultipart(`the header of part ${this.#parts} is larger than ${most} bytes`);
    }
    if (end < 0) return false;
    this.#headerBytes += end;
    const line = this.#pending.subarray(0, this.#pending[end - 1] === CARRIAGE_RETURN ? end - 1 : end);
    if (line.length === 0) {
      this.pieces.push({ kind: "part", headers });
      this.#headers = undefined;
      // The line feed stays, because it begins the boundary when the part is empty.
      this.#pending = this.#pending.subarray(end);
      this.#skip = true;
      return true;
    }
    this.#pending = this.#pending.subarray(end + 1);
    if (/^[ \t]/.test(line.toString("latin1", 0, 1)) && this.#name !== undefined) {
      headers[this.#name] = `${headers[this.#name]}${headerText(line)}`.trimEnd();
      return true;
    }
    const colon = line.indexOf(":");
    if (colon < 1) throw invalidMultipart("a part is malformed");
    const name = line.toString("latin1", 0, colon).trim().toLowerCase().replaceAll("-", "_");
    const value = headerText(line.subarray(colon + 1)).trim();
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
    this.#name = name;
    return true;
  }

  /** Whether the first pending byte ends the header and is not content. */
  #skip = true;

  /** Moves the first pending bytes to the pieces. */
  #give(length: number): void {
    const skipped = this.#skip && length > 0 ? 1 : 0;
    if (skipped > 0) this.#skip = false;
    const bytes = this.#pending.subarray(skipped, length);
    this.#pending = this.#pending.subarray(length);
    if (!this.#inPart || bytes.length === 0) return;
    this.#partBytes += bytes.length;
    const { part_bytes: most = Number.POSITIVE_INFINITY } = this.#limits;
    if (this.#partBytes > most) throw new ModhostError("BODY_TOO_LARGE", { limit: most });
    this.pieces.push({ kind: "data", bytes });
  }
}

/**
 * Classifies a line that begins like a boundary by the bytes after it; undefined when too few have
 * arrived.
 */
function meaningOf(rest: string): "part" | "end" | "data" | undefined {
  if (rest.startsWith("--")) return "end";
  if (/^[ \t]*\n/.test(rest)) return "part";
  return /^(-|[ \t]*)$/.test(rest) && rest.length < MAX_PADDING ? undefined : "data";
}
