import nodeFs, { createReadStream, ReadStream, read } from "node:fs";
import type { PooledBody } from "../../../types.ts";
import { BufferPool } from "./buffer_pool.ts";

const PIECE_BYTES = 64 * 1024;
/** Buffers that are kept to serve again. */
const MAX_FREE = 64;

const pool = new BufferPool(PIECE_BYTES, MAX_FREE);

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
  // A descriptor that was given to the stream is read from where it is.
  if (start === undefined && stream.path === undefined) return undefined;
  return new FilePieces(stream, fd, start ?? 0, Math.min(length, end - (start ?? 0) + 1));
}

/** The functions by which it reads: those of Node's own, or others that were given to it. */
function fsOf(stream: object): unknown {
  const key = Object.getOwnPropertySymbols(stream).find(({ description }) => description === "kFs");
  return key && (stream as Record<symbol, unknown>)[key];
}

/** Why opened files are sent as other streams are, in a sentence; undefined when they are not. */
export function whyFilesAreStreams(
  // It opens and reads nothing.
  stream: object = createReadStream("", { fd: 0, start: 1, end: 2, autoClose: false }),
): string | undefined {
  const { fd, pos, start, end } = stream as Insides;
  if (fd === 0 && pos === 1 && start === 1 && end === 2 && fsOf(stream) === nodeFs) return undefined;
  return "this version of Node.js keeps what a stream knows of its file in another way: downloads of files take more CPU time";
}

/** Its stream stays the owner of the file: whoever ends that one closes it. */
class FilePieces implements PooledBody, AsyncIterator<Uint8Array, void> {
  readonly #stream: ReadStream;
  readonly #fd: number;
  /** Null: where it is, in what has no positions. */
  #at: number | null;
  #left: number;
  #isReading = false;
  /** Closes the file, when its stream was ended during a read. */
  #close: (() => void) | undefined;

  constructor(stream: ReadStream, fd: number, from: number, length: number) {
    this.#stream = stream;
    this.#fd = fd;
    this.#at = from;
    this.#left = length;
    this.#holdOpen();
  }

  /**
   * Whoever ends the stream does not close the file while it is being read: the read may be waiting for a thread, and would
   * be one of whatever has the descriptor by then.
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

  /** To be called again when the last piece has come. */
  next(): Promise<IteratorResult<Uint8Array, void>> {
    return new Promise((resolve, reject) => {
      const buffer = this.#left > 0 && !this.#stream.destroyed ? pool.lend(this) : undefined;
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
