import { buzhashTable as table } from "./buzhash_table.ts";
import type { Chunker } from "./chunker.ts";

const MIN_CHUNK = 128 * 1024;
const MAX_CHUNK = 512 * 1024;
const window = 32;
const mask = (1 << 17) - 1;

/**
 * Finds the same boundaries as the `buzhash` chunker of go-ipfs: a rolling hash over 32 bytes, and
 * a boundary wherever its low 17 bits are zero.
 */
export class BuzhashChunker implements Chunker {
  readonly maxLength = MAX_CHUNK;
  #state = 0;
  /** Number of bytes of the current chunk that were hashed or skipped; 0 at its beginning. */
  #seen = 0;

  cut(bytes: Uint8Array, from: number, end: number): number {
    if (end - from < MIN_CHUNK) return -1;
    let state = this.#state;
    if (this.#seen === 0) {
      state = 0;
      for (let at = from + MIN_CHUNK - window; at < from + MIN_CHUNK; at += 1) {
        state = ((state << 1) | (state >>> 31)) ^ (table[bytes[at] as number] as number);
      }
      this.#seen = MIN_CHUNK;
    }
    let at = from + this.#seen;
    while (at < end && (state & mask) !== 0) {
      const leaving = table[bytes[at - window] as number] as number;
      const entering = table[bytes[at] as number] as number;
      state = ((state << 1) | (state >>> 31)) ^ leaving ^ entering;
      at += 1;
    }
    if ((state & mask) === 0 || at - from === MAX_CHUNK) {
      this.#seen = 0;
      return at;
    }
    this.#state = state;
    this.#seen = at - from;
    return -1;
  }
}
