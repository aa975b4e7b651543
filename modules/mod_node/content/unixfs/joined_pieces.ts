/** Joins small pieces of a body. */
import { writeVarint } from "../../formats/protobuf/varint.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";

/** Pieces from this size on are sent alone. */
export const MAX_JOINED_BYTES = 32 * 1024;
/**
 * Size of the arrays that collect pieces. A full array is sent at once. Each piece that is sent has
 * a cost, whatever its length.
 */
const ARRAY_BYTES = 64 * 1024;
/** Maximum number of milliseconds for which pieces wait for others. */
const MAX_DELAY_MS = 500;

/** The last varint. `add` copies it. */
const varint = new Uint8Array(10);

export class JoinedPieces {
  readonly #buffers: BufferPool | undefined;
  #full: Uint8Array[] = [];
  #last: Uint8Array | undefined;
  /** Number of bytes of the last array that are filled. */
  #at = 0;
  #since = 0;

  /** With a pool, the consumer of `take` releases the pieces to it. */
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

  /** Whether there is enough to be sent at once. */
  get isFull(): boolean {
    return this.#full.length > 0;
  }

  /** Whether it is time to send what was collected. */
  get isDue(): boolean {
    if (this.isFull) return true;
    if (this.#last === undefined) return false;
    return performance.now() - this.#since >= MAX_DELAY_MS;
  }

  /** Yields everything that was collected. */
  *take(): Generator<Uint8Array, void, undefined> {
    const pieces = this.#full;
    if (this.#last !== undefined) pieces.push(this.#last.subarray(0, this.#at));
    this.#full = [];
    this.#last = undefined;
    yield* pieces;
  }
}
