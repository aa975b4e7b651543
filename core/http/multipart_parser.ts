import { isUtf8 } from "node:buffer";
import { MultipartParser } from "formidable";
import type { MultipartLimits } from "../types.ts";
import { ModhostError } from "../util/errors.ts";

export const DEFAULT_MAX_PARTS = 1000;
export const DEFAULT_MAX_HEADER_BYTES = 16 * 1024;

/** Data in bits shorter than this is joined: a body may be full of what looks like the beginning of a boundary. */
const MIN_PIECE_BYTES = 1024;
/** As many bits are joined at a time: each is an object of its own. */
const MAX_BITS = 16_384;

/** Lower-case names with `_` for `-`. */
export type PartHeaders = Record<string, string | undefined>;

/** What the parser makes of the bytes, in order. */
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
 * formidable's parser with its events taken as they arise instead of through its readable side: some of them refer to
 * a buffer that the parser writes to again. Bounds what formidable leaves unbounded. It looks at every byte: what spares
 * it the contents is in `patches/formidable/`.
 */
export class PieceParser extends MultipartParser {
  /** Parsed and not yet taken. */
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
  /** As Latin-1. */
  #field = "";
  #value = "";
  /** Bits of data that are not in `pieces` yet. */
  #bits: Buffer[] = [];

  constructor(boundary: string, limits: MultipartLimits) {
    super();
    this.#maxParts = limits.parts ?? DEFAULT_MAX_PARTS;
    this.#maxHeaderBytes = limits.header_bytes ?? DEFAULT_MAX_HEADER_BYTES;
    this.#maxPartBytes = limits.part_bytes ?? Number.POSITIVE_INFINITY;
    this.initWithBoundary(boundary);
  }

  /** Parses one chunk; its pieces are in `pieces` afterwards, those before a fault included. */
  feed(chunk: Buffer): void {
    try {
      for (let rest = chunk; rest.length > 0 && this.#fault === undefined; ) {
        const content = this.contentIn(rest);
        if (content > 0) this.#data(rest.subarray(0, content));
        const end = this.headEnd(rest, content);
        if (content < end) this.#parse(rest.subarray(content, end));
        rest = rest.subarray(end);
      }
    } finally {
      this.#joinBits();
    }
    if (this.#fault !== undefined) throw this.#fault;
  }

  /** Bytes at the beginning of a chunk that are contents and nothing else, and need not pass formidable. */
  protected contentIn(_chunk: Buffer): number {
    return 0;
  }

  /** Where the bytes end, from `from` on, that are parsed before the next look at contents. */
  protected headEnd(chunk: Buffer, _from: number): number {
    return chunk.length;
  }

  /** formidable works at once: as a stream it would take its time over each of many small pieces. */
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

/** Names of files come as UTF-8 from browsers; anything else is Latin-1, as in HTTP. */
export function headerText(bytes: Buffer): string {
  return bytes.toString(isUtf8(bytes) ? "utf8" : "latin1");
}

/** The body is not malformed, it is not all there: `details.cut` tells. */
export function cutMultipart(): ModhostError {
  return new ModhostError("MULTIPART_INVALID", { reason: "it ends before the closing boundary", cut: true });
}

export function invalidMultipart(reason: string, cause?: Error): ModhostError {
  return new ModhostError("MULTIPART_INVALID", { reason }, cause && { cause });
}
