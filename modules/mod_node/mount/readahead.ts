/** Reads files for the kernel, which often requests consecutive pieces. */

import type { ReadBlock } from "../content/dag/reader.ts";
import type { UnixfsNode } from "../content/unixfs/node.ts";
import { fileSize } from "../content/unixfs/node.ts";
import { readFile } from "../content/unixfs/read.ts";
import type { ReadOptions } from "../storage/blockstore/block_service.ts";
import type { BufferPool } from "../storage/blockstore/buffer_pool.ts";
import { LRU } from "../util/lru.ts";
import type { ReadPieces } from "./fuse/file_system.ts";

/**
 * Maximum number of files that are read ahead concurrently, and of offsets where a sequential read
 * may continue.
 */
const MAX_STREAMS = 32;
const MAX_EXPECTED = 1024;
/** Milliseconds after which an idle sequential reader is dropped. */
const IDLE_MS = 5000;

/** A file, with an id that is unique while it is open. */
export interface OpenFile {
  readonly id: number | string;
  readonly tree: UnixfsNode;
}

type ReaderFactory = (options: ReadOptions) => ReadBlock;

/**
 * A read is sequential if it begins where an earlier one ended. From then on blocks are requested
 * ahead. Other reads read no more than their range.
 */
export class FileReadahead {
  readonly #reader: ReaderFactory;
  readonly #buffers: BufferPool;
  readonly #streams = new LRU<SequentialReader, true>(MAX_STREAMS, { onEvict: (stream) => stream.leave() });
  /** Offsets where reads have ended. */
  readonly #expected = new LRU<string, true>(MAX_EXPECTED);
  #timer: NodeJS.Timeout | undefined;

  constructor(reader: ReaderFactory, buffers: BufferPool) {
    this.#reader = reader;
    this.#buffers = buffers;
  }

  /** Returns `length` bytes; fewer only at the end. @throws NodeError, the signal's reason */
  async read({ id, tree }: OpenFile, offset: number, length: number, signal: AbortSignal): Promise<ReadPieces> {
    const position = `${id}:${offset}`;
    const following = this.#at(position);
    const end = offset + length;
    const inOrder = following !== undefined || this.#expected.delete(position);
    if (!inOrder) {
      if (end < fileSize(tree)) this.#expected.set(`${id}:${end}`, true);
      return this.#range(tree, offset, length, signal);
    }
    const stream = following ?? new SequentialReader(tree, offset, this.#reader, this.#buffers);
    if (end < fileSize(tree)) this.#keep(stream, `${id}:${end}`);
    else this.#streams.delete(stream);
    try {
      return await stream.take(length, signal);
    } catch (error) {
      this.#drop(stream);
      // The stream ended because another of its readers was interrupted.
      if (!signal.aborted && stream.isAborted) return this.#range(tree, offset, length, signal);
      throw error;
    }
  }

  close(): void {
    clearInterval(this.#timer);
    for (const [stream] of this.#streams) this.#drop(stream);
  }

  #range(tree: UnixfsNode, offset: number, length: number, signal: AbortSignal): Promise<ReadPieces> {
    return new SequentialReader(tree, offset, this.#reader, this.#buffers, length).take(length, signal);
  }

  /** Returns the least recently used stream at that position. */
  #at(position: string): SequentialReader | undefined {
    for (const [stream] of this.#streams) if (stream.position === position) return stream;
    return undefined;
  }

  #keep(stream: SequentialReader, position: string): void {
    stream.position = position;
    this.#streams.set(stream, true);
    this.#timer ??= setInterval(() => this.#sweep(), IDLE_MS).unref();
  }

  #sweep(): void {
    for (const [stream] of this.#streams) if (performance.now() - stream.used > IDLE_MS) this.#drop(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #drop(stream: SequentialReader): void {
    this.#streams.delete(stream);
    stream.leave();
  }
}

/** A sequential reader. */
class SequentialReader {
  /** File and offset where it continues. */
  position = "";
  used = performance.now();
  readonly #abort = new AbortController();
  readonly #source: AsyncGenerator<Uint8Array, void, undefined>;
  readonly #buffers: BufferPool;
  #rest: Uint8Array | undefined;
  /** Resolves after the last read. Reads run in order; after a failure all later ones fail. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(tree: UnixfsNode, offset: number, reader: ReaderFactory, buffers: BufferPool, length?: number) {
    const read = reader({ signal: this.#abort.signal, buffers });
    this.#source = readFile(tree, read, { offset, length, buffers });
    this.#buffers = buffers;
  }

  /** Whether it was aborted. */
  get isAborted(): boolean {
    return this.#abort.signal.aborted;
  }

  take(length: number, signal: AbortSignal): Promise<ReadPieces> {
    this.used = performance.now();
    const abort = () => this.leave();
    signal.addEventListener("abort", abort, { once: true });
    const taken = this.#turn.then(() => this.#take(length));
    this.#turn = taken;
    taken.catch(() => {});
    return taken.finally(() => signal.removeEventListener("abort", abort));
  }

  leave(): void {
    this.#abort.abort();
    this.#turn
      .catch(() => {})
      .then(() => this.#source.return())
      .catch(() => {});
  }

  async #take(length: number): Promise<ReadPieces> {
    const pieces: Uint8Array[] = [];
    const done: Uint8Array[] = [];
    for (let left = length; left > 0; ) {
      const piece = this.#rest ?? (await this.#next());
      this.#rest = undefined;
      if (piece === undefined) break;
      if (piece.length > left) {
        this.#rest = piece.subarray(left);
        pieces.push(piece.subarray(0, left));
      } else {
        pieces.push(piece);
        // Earlier reads of parts of the piece have been replied to, because replies are in order.
        done.push(piece);
      }
      left -= piece.length;
    }
    const release = () => {
      for (const piece of done) this.#buffers.release(piece);
    };
    return { pieces, release };
  }

  async #next(): Promise<Uint8Array | undefined> {
    const { value } = await this.#source.next();
    return value ?? undefined;
  }
}
