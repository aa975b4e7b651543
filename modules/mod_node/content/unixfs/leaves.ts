/**
 * Splits the bytes of a file into leaves. They are encoded and hashed in the buffer where they were
 * received, in order, several at a time.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import { dagPb, raw } from "../../formats/cid/codecs.ts";
import { encodePb } from "../../formats/dag_pb/dag_pb.ts";
import { NODE_DATA_TAG } from "../../formats/dag_pb/field_numbers.ts";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import type { Chunker } from "../../formats/unixfs/chunker/chunker.ts";
import {
  encodeUnixfs,
  type ModeAndTime,
  UNIXFS_DATA_TAG,
  UNIXFS_FILESIZE_TAG,
  UNIXFS_TYPE_TAG,
  unixfsTypes,
} from "../../formats/unixfs/format.ts";
import { type BlockSink, type Built, type CidSettings, cidOf } from "./build.ts";

/** A built node of a file. */
export interface FilePart extends Built {
  /** Number of bytes of the file in the node and below it. */
  readonly filesize: number;
}

export interface LeafSettings extends CidSettings {
  readonly chunker: () => Chunker;
  readonly rawLeaves: boolean;
  /** UnixFS type of leaves that are not raw blocks: File in balanced DAGs, Raw in trickle DAGs. */
  readonly leafType: "File" | "Raw";
  /** Path or URL of a file with the same bytes. Raw leaves store their offsets in that file. */
  readonly backing?: string | undefined;
  /** Mode and time of the file, for a leaf that is the whole file. Raw leaves cannot have any. */
  readonly facts?: ModeAndTime | undefined;
  /** Aborts the work on a piece that is split into very many leaves. */
  readonly signal?: AbortSignal | undefined;
}

/** Space around a chunk, in bytes, for the fields of the node that it becomes. */
const HEADROOM = 16;
const TAILROOM = 16;
/** Maximum number of leaves that are hashed or stored concurrently. */
const MAX_IN_FLIGHT = 8;
/** Number of pieces, or parts of them, after which other work of the process gets its turn. */
const TURN_STEPS = 128;
/** Size of the smallest buffer. It leaves room after a small first piece. */
const MIN_BUFFER = 256;

/** The leaves of one file, requested one after the other. */
export class Leaves {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #settings: LeafSettings;
  readonly #sink: BlockSink;
  readonly #chunker: Chunker;
  readonly #queue: (FilePart | Promise<FilePart>)[] = [];
  #buffer = new Uint8Array(0);
  /** End of the current chunk, which begins at `HEADROOM`. */
  #end = HEADROOM;
  /** The part of the last piece that belongs to later chunks. */
  #rest: Uint8Array | undefined;
  #ended = false;
  /**
   * Buffers of full size that the sink has released. New buffers for each leaf would keep the
   * garbage collector busy.
   */
  readonly #free: Uint8Array<ArrayBuffer>[] = [];
  /** Offset of the current chunk in the file. */
  #offset = 0;
  /** Number of pieces, or parts of them, that were processed. */
  #steps = 0;
  /** Whether a chunk was emitted: there may be many more. */
  #emitted = false;
  /** The first chunk, up to `end`, while it may be the only one of a file with mode or time. */
  #first: { readonly buffer: Uint8Array<ArrayBuffer>; readonly end: number } | undefined;

  constructor(source: AsyncIterable<Uint8Array>, settings: LeafSettings, sink: BlockSink) {
    this.#source = source[Symbol.asyncIterator]();
    this.#settings = settings;
    this.#sink = sink;
    this.#chunker = settings.chunker();
  }

  /** Size of a buffer for the longest chunk. */
  get #fullSize(): number {
    return HEADROOM + this.#chunker.maxLength + TAILROOM;
  }

  /** Whether `next` will return a leaf. */
  async more(): Promise<boolean> {
    if (this.#isWanting) await this.#fill();
    return this.#queue.length > 0;
  }

  /** Returns the next leaf; undefined at the end. */
  async next(): Promise<FilePart | undefined> {
    if (this.#isWanting) await this.#fill();
    return this.#queue.shift();
  }

  /** Returns a leaf without bytes: an empty file consists of it. */
  empty(): FilePart | Promise<FilePart> {
    return this.#build(new Uint8Array(HEADROOM + TAILROOM), HEADROOM, 0, this.#settings.facts);
  }

  /** To be called if the file is not read to its end. */
  async close(): Promise<void> {
    await this.#source.return?.();
    if (this.#queue.length > 0) await Promise.allSettled(this.#queue);
  }

  get #isWanting(): boolean {
    return !this.#ended && this.#queue.length < MAX_IN_FLIGHT;
  }

  async #fill(): Promise<void> {
    while (this.#isWanting) {
      const piece = this.#rest ?? (await this.#read());
      this.#rest = undefined;
      if (piece === undefined) this.#finish();
      else this.#take(piece);
      // Small leaves are hashed and stored without any wait, and a piece may be split into very
      // many of them. So other work gets its turn from time to time.
      this.#steps += 1;
      if (this.#steps % TURN_STEPS !== 0) continue;
      await nextTurn();
      this.#settings.signal?.throwIfAborted();
    }
  }

  async #read(): Promise<Uint8Array | undefined> {
    const { done, value } = await this.#source.next();
    return done ? undefined : value;
  }

  #take(piece: Uint8Array): void {
    const before = this.#end;
    const taken = Math.min(piece.length, HEADROOM + this.#chunker.maxLength - before);
    this.#reserve(before + taken);
    this.#buffer.set(taken === piece.length ? piece : piece.subarray(0, taken), before);
    const cut = this.#chunker.cut(this.#buffer, HEADROOM, before + taken);
    // Both cases would loop forever.
    if (cut < 0 ? taken === 0 && piece.length > 0 : cut <= HEADROOM) throw new Error("the chunker makes no progress");
    if (cut < 0) {
      this.#end = before + taken;
      if (taken < piece.length) this.#rest = piece.subarray(taken);
      return;
    }
    this.#emit(cut);
    const used = cut - before;
    if (used < piece.length) this.#rest = piece.subarray(used);
  }

  #finish(): void {
    this.#ended = true;
    if (this.#end > HEADROOM) this.#emit(this.#end);
    if (this.#first !== undefined)
      this.#push(this.#build(this.#first.buffer, this.#first.end, 0, this.#settings.facts));
  }

  /**
   * Makes room for a chunk up to `end`. For the first chunk the buffer grows by doubling; for later
   * chunks it has full size. Small files also arrive in several pieces, and need no large buffer.
   */
  #reserve(end: number): void {
    if (end + TAILROOM <= this.#buffer.length) return;
    const whole = this.#fullSize;
    const needed = Math.max(MIN_BUFFER, end + TAILROOM, this.#buffer.length * 2);
    const room = this.#emitted ? whole : Math.min(whole, needed);
    const spare = room === whole ? this.#free.pop() : undefined;
    const next = spare ?? new Uint8Array(Buffer.allocUnsafeSlow(room).buffer);
    next.set(this.#buffer.subarray(HEADROOM, this.#end), HEADROOM);
    this.#buffer = next;
  }

  #emit(end: number): void {
    if (this.#first !== undefined) this.#push(this.#build(this.#first.buffer, this.#first.end));
    this.#first = undefined;
    if (this.#settings.facts !== undefined && !this.#emitted) this.#first = { buffer: this.#buffer, end };
    else this.#push(this.#build(this.#buffer, end, this.#offset));
    this.#offset += end - HEADROOM;
    this.#buffer = new Uint8Array(0);
    this.#end = HEADROOM;
    this.#emitted = true;
  }

  #push(leaf: FilePart | Promise<FilePart>): void {
    if (leaf instanceof Promise) leaf.catch(() => {});
    this.#queue.push(leaf);
  }

  #build(
    buffer: Uint8Array<ArrayBuffer>,
    end: number,
    offset = 0,
    facts: ModeAndTime | undefined = undefined,
  ): FilePart | Promise<FilePart> {
    const filesize = end - HEADROOM;
    const { rawLeaves, leafType, backing } = this.#settings;
    const bytes = rawLeaves ? buffer.subarray(HEADROOM, end) : encodeLeaf(buffer, end, leafType, facts);
    const at = backing !== undefined && rawLeaves && filesize > 0 ? { path: backing, offset } : undefined;
    const release = buffer.length === this.#fullSize ? () => this.#free.push(buffer) : undefined;
    const store = (cid: CID): FilePart | Promise<FilePart> => {
      const stored = this.#sink({ cid, bytes, release, ...(at && { at }) });
      const part = { cid, size: bytes.length, filesize };
      return stored === undefined ? part : stored.then(() => part);
    };
    // Small leaves are hashed and stored synchronously, because promises would cost as much time as
    // that work.
    const cid = cidOf(rawLeaves ? raw : dagPb, bytes, this.#settings);
    return cid instanceof Promise ? cid.then(store) : store(cid);
  }
}

/**
 * Returns the node of the chunk from `HEADROOM` to `end`. The node is a part of the buffer, unless
 * it has mode or time.
 */
function encodeLeaf(
  buffer: Uint8Array,
  end: number,
  type: LeafSettings["leafType"],
  facts: ModeAndTime | undefined,
): Uint8Array {
  if (facts === undefined) return wrapChunk(buffer, end, unixfsTypes.indexOf(type));
  const chunk = buffer.subarray(HEADROOM, end);
  const data = chunk.length === 0 ? undefined : chunk;
  return encodePb({ data: encodeUnixfs({ ...facts, type, data, filesize: chunk.length }), links: [] });
}

/** Writes the dag-pb and UnixFS fields around the chunk. Returns the bytes of the node. */
function wrapChunk(buffer: Uint8Array, end: number, type: number): Uint8Array {
  const length = end - HEADROOM;
  const sizeLength = varintLength(length);
  const dataHead = length === 0 ? 0 : 1 + sizeLength;
  const message = 2 + dataHead + length + 1 + sizeLength;
  const from = HEADROOM - dataHead - 2 - varintLength(message) - 1;
  buffer[from] = NODE_DATA_TAG;
  let at = writeVarint(buffer, from + 1, message);
  buffer[at++] = UNIXFS_TYPE_TAG;
  buffer[at++] = type;
  if (length > 0) {
    buffer[at++] = UNIXFS_DATA_TAG;
    writeVarint(buffer, at, length);
  }
  buffer[end] = UNIXFS_FILESIZE_TAG;
  return buffer.subarray(from, writeVarint(buffer, end + 1, length));
}
