import nodeFs, { createReadStream, ReadStream, read } from "node:fs";
import type { PooledBody } from "../../../types.ts";
import { BufferPool } from "./buffer_pool.ts";

const PIECE_BYTES = 64 * 1024;
/** Maximum number of free buffers that are kept. */
const MAX_FREE = 64;

const pool = new BufferPool(PIECE_BYTES, MAX_FREE);

interface Insides {
  readonly fd?: number | null;
  readonly pos?: number;
  readonly start?: number;
  readonly end?: number;
}

/**
 * Reads `length` bytes of an opened file in pieces with reused memory. A stream takes new memory
 * for each piece, which costs as much as reading. Returns undefined when other code reads the
 * stream or waits for its end, or when its position is unknown; the file is then sent like any
 * other stream.
 */
export function filePieces(stream: ReadStream, length: number): PooledBody | undefined {
  const { fd, pos, start, end } = stream as Insides;
  const isOwn = Object.getPrototypeOf(stream) === ReadStream.prototype && fsOf(stream) === nodeFs;
  const isFresh = pos === start && stream.bytesRead === 0 && stream.readableFlowing === null;
  const hasListeners = ["data", "readable", "end"].some((event) => stream.listenerCount(event) > 0);
  const isPlain = isOwn && isFresh && !hasListeners && stream.readableEncoding === null && !stream.destroyed;
  if (!isPlain || typeof fd !== "number" || typeof end !== "number") return undefined;
  // A descriptor that was given to the stream is read from its current position, which is unknown
  // here.
  if (start === undefined && stream.path === undefined) return undefined;
  return new FilePieces(stream, fd, start ?? 0, Math.min(length, end - (start ?? 0) + 1));
}

/** Returns the file system functions of a stream: Node's own, or others that were given to it. */
function fsOf(stream: object): unknown {
  const key = Object.getOwnPropertySymbols(stream).find(({ description }) => description === "kFs");
  return key && (stream as Record<symbol, unknown>)[key];
}

/**
 * Returns why opened files are sent like other streams, in a sentence; undefined when they are sent
 * in pieces.
 */
export function whyFilesAreStreams(
  // This stream opens and reads nothing.
  stream: object = createReadStream("", { fd: 0, start: 1, end: 2, autoClose: false }),
): string | undefined {
  const { fd, pos, start, end } = stream as Insides;
  if (fd === 0 && pos === 1 && start === 1 && end === 2 && fsOf(stream) === nodeFs) return undefined;
  return "this version of Node.js keeps the state of file streams in another way: downloads of files take more CPU time";
}

/** The pieces of a file. The stream still owns the file: destroying the stream closes it. */
class FilePieces implements PooledBody, AsyncIterator<Uint8Array, void> {
  readonly #stream: ReadStream;
  readonly #fd: number;
  /** The position of the next read; null for a file without positions, such as a pipe. */
  #at: number | null;
  #left: number;
  #isReading = false;
  /** Closes the file after a read during which the stream was destroyed. */
  #close: (() => void) | undefined;

  constructor(stream: ReadStream, fd: number, from: number, length: number) {
    this.#stream = stream;
    this.#fd = fd;
    this.#at = from;
    this.#left = length;
    this.#holdOpen();
  }

  /**
   * Delays closing the file until a running read is over. The read may be waiting for a thread, and
   * would then read whatever file has the descriptor.
   */
  #holdOpen(): void {
    const stream = this.#stream;
    const { _destroy: destroy } = stream;
    stream._destroy = (error, done) => {
      const close = () => destroy.call(stream, error, done);
      if (this.#isReading) this.#close = close;
      else close();
    };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Must not be called before the previous piece has arrived. */
  next(): Promise<IteratorResult<Uint8Array, void>> {
    return new Promise((resolve, reject) => {
      const buffer = this.#left > 0 && !this.#stream.destroyed ? pool.lease(this) : undefined;
      if (buffer === undefined) {
        resolve(this.#end());
        return;
      }
      const wanted = Math.min(this.#left, PIECE_BYTES);
      this.#isReading = true;
      read(this.#fd, buffer, 0, wanted, this.#at, (error, length) => {
        this.#isReading = false;
        this.#close?.();
        const isEnded = this.#stream.destroyed;
        if (error?.code === "ESPIPE" && this.#at === 0 && !isEnded) {
          this.release(buffer);
          this.#at = null;
          resolve(this.next());
          return;
        }
        const isOver = isEnded || error !== null || length === 0;
        if (isOver) this.release(buffer);
        if (error !== null && !isEnded) {
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

  release(piece: Uint8Array): void {
    pool.release(piece, this);
  }

  #end(): IteratorReturnResult<void> {
    this.#left = 0;
    this.#stream.destroy();
    return { done: true, value: undefined };
  }
}
