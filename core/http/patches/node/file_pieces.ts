import nodeFs, { ReadStream, read } from "node:fs";
import type { PooledBody } from "../../../types.ts";

const PIECE_BYTES = 64 * 1024;
/** Buffers that are kept to serve again. */
const MAX_FREE = 64;
const free: Uint8Array<ArrayBuffer>[] = [];

interface Insides {
  readonly fd?: number | null;
  readonly pos?: number;
  readonly start?: number;
  readonly end?: number;
}

/**
 * The `length` bytes that an opened file is to be read for, in pieces whose memory serves again: a stream takes fresh memory for
 * each, which costs as much as reading. Undefined where somebody else reads the stream or waits for its end, or it does not
 * tell from where it reads what; it is sent as any other then.
 */
export function filePieces(stream: ReadStream, length: number): PooledBody | undefined {
  const { fd, pos, start, end } = stream as Insides;
  const isOwn = Object.getPrototypeOf(stream) === ReadStream.prototype && fsOf(stream) === nodeFs;
  const isFresh = pos === start && stream.bytesRead === 0 && stream.readableFlowing === null;
  const isHeard = ["data", "readable", "end"].some((event) => stream.listenerCount(event) > 0);
  const isPlain = isOwn && isFresh && !isHeard && stream.readableEncoding === null && !stream.destroyed;
  if (!isPlain || typeof fd !== "number" || typeof end !== "number") return undefined;
  return new FilePieces(stream, fd, start ?? null, Math.min(length, end - (start ?? 0) + 1));
}

/** The functions by which it reads: those of Node's own, or others that were given to it. */
function fsOf(stream: ReadStream): unknown {
  const key = Object.getOwnPropertySymbols(stream).find(({ description }) => description === "kFs");
  return key && (stream as unknown as Record<symbol, unknown>)[key];
}

/** Its stream stays the owner of the file: whoever ends that one closes it. */
class FilePieces implements PooledBody, AsyncIterator<Uint8Array, void> {
  readonly #stream: ReadStream;
  readonly #fd: number;
  /** Null: where the file is read at is its own matter. */
  #at: number | null;
  #left: number;

  constructor(stream: ReadStream, fd: number, from: number | null, length: number) {
    this.#stream = stream;
    this.#fd = fd;
    this.#at = from;
    this.#left = length;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Uint8Array, void>> {
    return new Promise((resolve, reject) => {
      if (this.#left <= 0 || this.#stream.destroyed) {
        resolve(this.#end());
        return;
      }
      const buffer = free.pop() ?? new Uint8Array(PIECE_BYTES);
      const wanted = Math.min(this.#left, PIECE_BYTES);
      read(this.#fd, buffer, 0, wanted, this.#at, (error, length) => {
        // What was closed meanwhile may be another file by now.
        const isOver = this.#stream.destroyed || error !== null || length === 0;
        if (isOver) this.release(buffer);
        if (error !== null && !this.#stream.destroyed) {
          this.#end();
          reject(error);
        } else if (isOver) resolve(this.#end());
        else {
          if (this.#at !== null) this.#at += length;
          this.#left -= length;
          resolve({ done: false, value: buffer.subarray(0, length) });
        }
      });
    });
  }

  async return(): Promise<IteratorResult<Uint8Array, void>> {
    return this.#end();
  }

  release({ buffer }: Uint8Array): void {
    if (free.length < MAX_FREE) free.push(new Uint8Array(buffer as ArrayBuffer));
  }

  #end(): IteratorReturnResult<void> {
    this.#left = 0;
    this.#stream.destroy();
    return { done: true, value: undefined };
  }
}
