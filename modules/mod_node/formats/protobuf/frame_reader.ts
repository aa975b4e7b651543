/** Splits a stream of chunks into messages. Each message is preceded by its length as a varint. */
import { detach } from "../../util/async/read_all.ts";
import { failure } from "../../util/errors.ts";

type Chunk = Uint8Array | Iterable<Uint8Array>;

/** Provides memory for messages. */
export interface Allocator {
  /** Returns `length` bytes with arbitrary content. */
  take(length: number): Uint8Array;
}

/** Maximum length in bytes of the varint before a message. */
const MAX_LENGTH_BYTES = 4;

export class FrameReader {
  readonly #maxLength: number;
  readonly #buffers: Allocator;
  readonly #transfer: boolean;
  #length = 0;
  #scale = 1;
  #digits = 0;
  /** Number of bytes that the current message lacks; undefined while its length is being read. */
  #missing: number | undefined;
  /** Buffer for a message that comes in several chunks. */
  #whole: Uint8Array | undefined;

  /**
   * `maxLength` is in bytes. `buffers` provides the memory for messages that come in several
   * chunks. With `transfer`, the reader frees the memory of chunks after it has copied them, so the
   * caller must not use a chunk again.
   */
  constructor(maxLength: number, buffers: Allocator, { transfer = false }: { readonly transfer?: boolean } = {}) {
    this.#maxLength = maxLength;
    this.#buffers = buffers;
    this.#transfer = transfer;
  }

  /** Number of bytes in memory for an incomplete message. */
  get bufferedBytes(): number {
    return this.#whole?.length ?? 0;
  }

  /**
   * Yields the messages that a chunk completes. A message that lies within the chunk is a view of
   * it; other messages are copies.
   *
   * @throws NodeError for a message that is longer than the limit
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
    if (byte >= 0x80 || this.#length > this.#maxLength)
      throw failure("PROTOBUF_INVALID", { reason: "a message that is too long" });
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
    if (this.#transfer) detach(piece);
    this.#whole = this.#missing === undefined ? undefined : into;
    return this.#missing === undefined ? into : undefined;
  }
}
