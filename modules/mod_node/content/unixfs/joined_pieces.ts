/** Small pieces of a body, joined. */
import { writeVarint } from "../../formats/protobuf/varint.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";

/** A piece that is as long needs no company. */
export const MAX_JOINED_BYTES = 32 * 1024;
/** Of one array; they go out once it is full: each piece that is sent costs, however long it is. */
const ARRAY_BYTES = 64 * 1024;
/** Milliseconds that they wait for others. */
const MAX_HELD_MS = 500;

/** The last one, which is copied. */
const varint = new Uint8Array(10);

export class JoinedPieces {
  readonly #buffers: BufferPool | undefined;
  #full: Uint8Array[] = [];
  #last: Uint8Array | undefined;
  /** Bytes of the last array that are filled. */
  #at = 0;
  #since = 0;

  /** With a pool, what is taken is released to it by whoever gets it. */
  constructor(buffers?: BufferPool) {
    this.#buffers = buffers;
  }

  /** Copies `bytes`. */
  add(bytes: Uint8Array): void {
    for (let rest = bytes; rest.length > 0; ) {
      const last = this.#last ?? this.#begin();
      const room = last.length - this.#at;
      const part = rest.length <= room ? rest : rest.subarray(0, room);
      last.set(part, this.#at);
      this.#at += part.length;
      if (part.length < room) return;
      this.#full.push(last);
      this.#last = undefined;
      rest = rest.subarray(part.length);
    }
  }

  addVarint(value: number): void {
    this.add(varint.subarray(0, writeVarint(varint, 0, value)));
  }

  #begin(): Uint8Array {
    if (this.#full.length === 0) this.#since = performance.now();
    this.#last = this.#buffers?.take(ARRAY_BYTES) ?? new Uint8Array(Buffer.allocUnsafeSlow(ARRAY_BYTES).buffer);
    this.#at = 0;
    return this.#last;
  }

  /** There is as much as goes out at once. */
  get isFull(): boolean {
    return this.#full.length > 0;
  }

  /** It is time to send what is there. */
  get isDue(): boolean {
    if (this.isFull) return true;
    if (this.#last === undefined) return false;
    return performance.now() - this.#since >= MAX_HELD_MS;
  }

  /** All that is there. */
  *take(): Generator<Uint8Array, void, undefined> {
    const pieces = this.#full;
    if (this.#last !== undefined) pieces.push(this.#last.subarray(0, this.#at));
    this.#full = [];
    this.#last = undefined;
    yield* pieces;
  }
}
