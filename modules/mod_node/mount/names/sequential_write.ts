/** Combines sequential writes to a file into one change, however many pieces there are. */

import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";

/** Maximum number of bytes that wait to be stored. */
const MAX_WAITING = 4 * 1024 * 1024;

export class SequentialWrite {
  /** Offset that the next piece must have to belong to this write. */
  end: number;
  readonly began = performance.now();
  used = this.began;
  readonly #pieces: Uint8Array[] = [];
  #waiting = 0;
  #over = false;
  #wake: (() => void) | undefined;
  /** Callers that wait for room: the kernel sends several writes at once. */
  #waiters: (() => void)[] = [];
  readonly #done: Promise<void>;

  readonly #buffers: BufferPool;

  /**
   * `write` reads the content and resolves when the file has changed. Each piece is released to
   * `buffers` when the next one is requested.
   */
  constructor(offset: number, buffers: BufferPool, write: (content: AsyncIterable<Uint8Array>) => Promise<void>) {
    this.end = offset;
    this.#buffers = buffers;
    this.#done = write(this.#content()).finally(() => {
      this.#over = true;
      this.#drain();
    });
    this.#done.catch(() => undefined);
  }

  /** Resolves when there is room for more. @throws the failure of the write */
  async put(bytes: Uint8Array): Promise<void> {
    this.used = performance.now();
    this.end += bytes.length;
    this.#pieces.push(bytes);
    this.#waiting += bytes.length;
    this.#wake?.();
    while (this.#waiting > MAX_WAITING && !this.#over) {
      await new Promise<void>((resolve) => {
        this.#waiters.push(resolve);
      });
    }
    if (this.#over) await this.#done;
  }

  /** Resolves when the file has changed. @throws the failure of the write */
  finish(): Promise<void> {
    this.#over = true;
    this.#wake?.();
    return this.#done;
  }

  #drain(): void {
    for (const wake of this.#waiters.splice(0)) wake();
  }

  async *#content(): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) {
        yield piece;
        this.#buffers.release(piece);
        this.#waiting -= piece.length;
        this.#drain();
      } else if (this.#over) return;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }
}
