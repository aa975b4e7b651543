/** The body of a worker's response, in pieces whose memory is used again. */
import type { PooledBody } from "../types.ts";
import { CREDIT_STEP_BYTES } from "./request_frames.ts";

/** The call whose response has the body. */
export interface BodySource {
  /** The reader has taken bytes. */
  taken(bytes: number): void;
  /** The memory of a piece can be used again. */
  release(piece: Uint8Array): void;
  /** The reader has stopped before the end. */
  left(): void;
}

export class LinkedBody implements PooledBody {
  /** A flat list. */
  rawTrailers: readonly string[] = [];
  /** Nothing more arrives. */
  isEnded = false;
  readonly #source: BodySource;
  readonly #pieces: Buffer[] = [];
  #owed = 0;
  #error: Error | undefined;
  #failed: ((error: Error) => void) | undefined;
  /** Nobody reads the pieces. */
  #isDropped = false;
  #arrived: () => void = () => undefined;

  constructor(source: BodySource) {
    this.#source = source;
  }

  /** The response has begun at its sender, so its head is not held back. */
  get hasBegun(): boolean {
    return this.#pieces.length === 0 && !this.isEnded;
  }

  /** Adds a piece. */
  give(piece: Buffer): void {
    if (this.#isDropped) this.#take(piece);
    else this.#pieces.push(piece);
    this.#arrived();
  }

  /** The body is complete. */
  finish(rawTrailers: readonly string[]): void {
    this.rawTrailers = rawTrailers;
    this.isEnded = true;
    this.#arrived();
  }

  /** The body has broken off. */
  fail(error: Error): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.#error = error;
    this.#failed?.(error);
    this.#arrived();
  }

  /** Calls back if the body breaks off, or has broken off. */
  whenFailed(callback: (error: Error) => void): void {
    if (this.#error !== undefined) callback(this.#error);
    else this.#failed = callback;
  }

  /** Ignores the pieces. */
  drop(): void {
    this.#isDropped = true;
    for (const piece of this.#pieces.splice(0)) this.#take(piece);
  }

  release(piece: Uint8Array): void {
    this.#source.release(piece);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void> {
    try {
      for (;;) {
        const piece = this.#pieces.shift();
        if (piece !== undefined) {
          this.#pay(piece.length);
          yield piece;
        } else if (this.#error !== undefined) throw this.#error;
        else if (this.isEnded) return;
        else {
          await new Promise<void>((resolve) => {
            this.#arrived = resolve;
          });
        }
      }
    } finally {
      this.drop();
      if (!this.isEnded) this.#source.left();
    }
  }

  #take(piece: Buffer): void {
    this.#pay(piece.length);
    this.release(piece);
  }

  #pay(bytes: number): void {
    this.#owed += bytes;
    if (this.#owed < CREDIT_STEP_BYTES) return;
    this.#source.taken(this.#owed);
    this.#owed = 0;
  }
}
