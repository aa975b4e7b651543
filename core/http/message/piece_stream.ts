import { Readable } from "node:stream";
import type { PooledBody } from "../../types.ts";
import { discard } from "./stream.ts";

/**
 * Presents a body as a Node stream, because middleware knows only those. While nobody has begun to
 * read it, `untouched` returns the original body, which is then sent as if there were no
 * middleware.
 */
export class PieceStream extends Readable {
  readonly #source: AsyncIterable<unknown>;
  #iterator: AsyncIterator<unknown> | undefined;
  #isTaken = false;

  constructor(source: AsyncIterable<unknown>) {
    super();
    this.#source = source;
  }

  /**
   * Returns the original body, which then belongs to the caller; undefined when somebody reads this
   * stream.
   */
  untouched(): AsyncIterable<unknown> | undefined {
    if (this.#iterator !== undefined || this.destroyed) return undefined;
    this.#isTaken = true;
    return this.#source;
  }

  override _read(): void {
    this.#iterator ??= this.#source[Symbol.asyncIterator]();
    this.#next(this.#iterator).catch((error: Error) => this.destroy(error));
  }

  async #next(iterator: AsyncIterator<unknown>): Promise<void> {
    for (;;) {
      const { done, value } = await iterator.next();
      if (done === true) {
        this.push(null);
        return;
      }
      if (typeof value !== "string" && !(value instanceof Uint8Array)) {
        throw new TypeError(`A response stream gave a ${typeof value}: only strings and bytes can be sent`);
      }
      if (value.length === 0) continue;
      this.push(typeof value === "string" ? value : this.#own(value));
      return;
    }
  }

  /** Readers of this stream may keep a piece, so a piece that its source reuses is copied. */
  #own(piece: Uint8Array): Uint8Array {
    if (!("release" in this.#source)) return piece;
    const copy = Buffer.from(piece);
    (this.#source as PooledBody).release(piece);
    return copy;
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.#isTaken) {
      if (this.#iterator === undefined) discard(this.#source);
      else Promise.try(() => this.#iterator?.return?.()).catch(() => undefined);
    }
    done(error);
  }
}
