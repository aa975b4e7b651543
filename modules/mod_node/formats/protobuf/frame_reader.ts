/** A stream of chunks, cut into messages: each comes behind its length as a varint. */
import { NodeError } from "../../util/errors.ts";

type Chunk = Uint8Array | Iterable<Uint8Array>;

/** Where messages get their memory. */
export interface Allocator {
  /** So many bytes, with anything in them. */
  take(length: number): Uint8Array;
}

/** Bytes that a length may take. */
const MAX_LENGTH_BYTES = 4;

export class FrameReader {
  readonly #longest: number;
  readonly #buffers: Allocator;
  #length = 0;
  #scale = 1;
  #digits = 0;
  /** Of the message that is coming; undefined while its length is read. */
  #missing: number | undefined;
  /** A message that came in several chunks, so far. */
  #whole: Uint8Array | undefined;

  /** `longest`: bytes of a message at most. `buffers`: for messages that come in several chunks. */
  constructor(longest: number, buffers: Allocator) {
    this.#longest = longest;
    this.#buffers = buffers;
  }

  /** Bytes that are held for a message that is not whole yet. */
  get heldBytes(): number {
    return this.#whole?.length ?? 0;
  }

  /**
   * The messages that a chunk completes. One that lies within a chunk is a view of it, others are put together.
   *
   * @throws NodeError at a message that is too long
   */
  *read(chunk: Chunk): Generator<Uint8Array, void, undefined> {
    if (!(chunk instanceof Uint8Array)) {
      for (const part of chunk) yield* this.read(part);
      return;
    }
    for (let at = 0; at < chunk.length; ) {
      if (this.#missing === undefined) this.#lengthByte(chunk[at++] as number);
      if (this.#missing === undefined) continue;
      const piece = chunk.subarray(at, at + this.#missing);
      at += piece.length;
      const whole = this.#take(piece, this.#missing);
      if (whole !== undefined) yield whole;
    }
  }

  #lengthByte(byte: number): void {
    this.#length += (byte & 0x7f) * this.#scale;
    this.#scale *= 128;
    this.#digits += 1;
    if (byte >= 0x80 && this.#digits < MAX_LENGTH_BYTES) return;
    if (byte >= 0x80 || this.#length > this.#longest) throw new NodeError("a message that is too long");
    this.#missing = this.#length;
    this.#length = 0;
    this.#scale = 1;
    this.#digits = 0;
  }

  #take(piece: Uint8Array, missing: number): Uint8Array | undefined {
    const whole = this.#whole;
    this.#missing = piece.length < missing ? missing - piece.length : undefined;
    if (whole === undefined && this.#missing === undefined) return piece;
    const into = whole ?? this.#buffers.take(missing);
    into.set(piece, into.length - missing);
    this.#whole = this.#missing === undefined ? undefined : into;
    return this.#missing === undefined ? into : undefined;
  }
}
