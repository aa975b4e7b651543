import { isUtf8 } from "node:buffer";
import { MultipartParser } from "formidable";
import type { MultipartLimits } from "../../../types.ts";
import { ModhostError } from "../../../util/errors.ts";

export const DEFAULT_MAX_PARTS = 1000;
export const DEFAULT_MAX_HEADER_BYTES = 16 * 1024;

/**
 * Data in shorter pieces is joined, because a body may be full of bytes that look like the
 * beginning of a boundary.
 */
const MIN_PIECE_BYTES = 1024;
/** Maximum number of short pieces that wait to be joined; each is an object. */
const MAX_BITS = 16_384;

/** Headers by lower-case name, with `_` for `-`. */
export type PartHeaders = Record<string, string | undefined>;

/** One result of the parser; results are in the order of the bytes. */
export type Piece =
  | { readonly kind: "part"; readonly headers: PartHeaders }
  | { readonly kind: "data"; readonly bytes: Buffer }
  | { readonly kind: "end" };

interface ParserEvent {
  readonly name:
    | "partBegin"
    | "headerField"
    | "headerValue"
    | "headerEnd"
    | "headersEnd"
    | "partData"
    | "partEnd"
    | "end";
  readonly buffer?: Buffer;
  readonly start?: number;
  readonly end?: number;
}

/**
 * formidable's parser, with its events handled at once instead of through its readable side: some
 * of them refer to a buffer that the parser overwrites. Adds limits that formidable lacks.
 * formidable looks at every byte, so contents bypass it, and only boundaries and headers pass
 * through it.
 */
export class PieceParser extends MultipartParser {
  /** Parsed pieces that nobody has taken yet. */
  readonly pieces: Piece[] = [];
  /** The closing boundary has been seen. */
  complete = false;
  readonly #maxParts: number;
  readonly #maxHeaderBytes: number;
  readonly #maxPartBytes: number;
  #chunk: Buffer | undefined;
  #fault: ModhostError | undefined;
  #parts = 0;
  #headerBytes = 0;
  #partBytes = 0;
  #headers: PartHeaders = Object.create(null);
  /** Name and value of the current header, as Latin-1. */
  #field = "";
  #value = "";
  /** Short pieces of data that are not in `pieces` yet. */
  #bits: Buffer[] = [];

  constructor(boundary: string, limits: MultipartLimits) {
    super();
    this.#maxParts = limits.parts ?? DEFAULT_MAX_PARTS;
    this.#maxHeaderBytes = limits.header_bytes ?? DEFAULT_MAX_HEADER_BYTES;
    this.#maxPartBytes = limits.part_bytes ?? Number.POSITIVE_INFINITY;
    this.initWithBoundary(boundary);
  }

  /** Parses one chunk into `pieces`. After a fault they contain the pieces before it. */
  feed(chunk: Buffer): void {
    if (this.#fault === undefined) this.#parse(chunk);
    this.#end();
  }

  /** Adds contents of the current part, which contain no boundary and no beginning of one. */
  content(bytes: Buffer): void {
    if (this.#fault === undefined && bytes.length > 0) this.#data(bytes);
    this.#end();
  }

  #end(): void {
    this.#joinBits();
    if (this.#fault !== undefined) throw this.#fault;
  }

  /**
   * Calls formidable directly: as a stream it would spend its time on each of many small pieces.
   */
  #parse(chunk: Buffer): void {
    this.#chunk = chunk;
    this._transform(chunk, "binary", (error?: Error) => {
      if (error) this.#fault ??= invalidMultipart("a part is malformed", error);
    });
    this.#chunk = undefined;
  }

  override push(event: ParserEvent | null): boolean {
    if (event !== null && this.#fault === undefined) this.#handle(event);
    return true;
  }

  #handle(event: ParserEvent): void {
    switch (event.name) {
      case "partBegin":
        this.#begin();
        return;
      case "headerField":
        this.#field += this.#headerPiece(event);
        return;
      case "headerValue":
        this.#value += this.#headerPiece(event);
        return;
      case "headerEnd":
        this.#addHeader();
        return;
      case "headersEnd":
        this.pieces.push({ kind: "part", headers: this.#headers });
        return;
      case "partData":
        this.#data(this.#bytes(event));
        return;
      case "partEnd":
        this.#joinBits();
        this.pieces.push({ kind: "end" });
        return;
      case "end":
        this.complete = true;
    }
  }

  #begin(): void {
    this.#parts += 1;
    this.#headerBytes = 0;
    this.#partBytes = 0;
    this.#headers = Object.create(null);
    this.#field = "";
    this.#value = "";
    if (this.#parts > this.#maxParts) this.#fault = invalidMultipart(`it has more than ${this.#maxParts} parts`);
  }

  #addHeader(): void {
    const name = this.#field.toLowerCase().replaceAll("-", "_");
    const isAscii = !/[\x80-\xff]/.test(this.#value);
    const value = isAscii ? this.#value : headerText(Buffer.from(this.#value, "latin1"));
    const before = this.#headers[name];
    this.#headers[name] = before === undefined ? value : `${before}, ${value}`;
    this.#field = "";
    this.#value = "";
  }

  #data(bytes: Buffer): void {
    this.#partBytes += bytes.length;
    if (this.#partBytes > this.#maxPartBytes) {
      this.#fault = new ModhostError("BODY_TOO_LARGE", { limit: this.#maxPartBytes });
    } else if (bytes.length < MIN_PIECE_BYTES) {
      this.#bits.push(bytes);
      if (this.#bits.length >= MAX_BITS) this.#joinBits();
    } else {
      this.#joinBits();
      this.pieces.push({ kind: "data", bytes });
    }
  }

  #joinBits(): void {
    const bits = this.#bits;
    if (bits.length === 0) return;
    this.#bits = [];
    this.pieces.push({ kind: "data", bytes: bits.length === 1 ? (bits[0] as Buffer) : Buffer.concat(bits) });
  }

  #headerPiece(event: ParserEvent): string {
    const bytes = this.#bytes(event);
    this.#headerBytes += bytes.length;
    if (this.#headerBytes > this.#maxHeaderBytes) {
      this.#fault = invalidMultipart(`the header of part ${this.#parts} is larger than ${this.#maxHeaderBytes} bytes`);
    }
    return bytes.toString("latin1");
  }

  #bytes({ buffer, start, end }: ParserEvent): Buffer {
    const bytes = (buffer ?? Buffer.alloc(0)).subarray(start, end);
    return buffer === this.#chunk ? bytes : Buffer.from(bytes);
  }
}

/** Browsers send file names as UTF-8. Other text is Latin-1, as in HTTP. */
export function headerText(bytes: Buffer): string {
  return bytes.toString(isUtf8(bytes) ? "utf8" : "latin1");
}

/**
 * Creates the error for a body that ends too early. `details.cut` distinguishes it from a malformed
 * body.
 */
export function cutMultipart(): ModhostError {
  return new ModhostError("MULTIPART_INVALID", { reason: "it ends before the closing boundary", cut: true });
}

export function invalidMultipart(reason: string, cause?: Error): ModhostError {
  return new ModhostError("MULTIPART_INVALID", { reason }, cause && { cause });
}
