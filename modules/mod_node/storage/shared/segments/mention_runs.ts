/**
 * Log entries about many blocks, sorted by digest on the disk of this host. Each block can be found
 * long before all of them are in the index. They are then written to the index in its own order.
 */
import { type Form, keyOf, Varints, varints } from "../../blockstore/segments/format.ts";
import type { IndexedBlock } from "./index_file.ts";

/** One log entry about a block. */
export interface Mention extends IndexedBlock {
  /** Number of the entry, in the order of the log. */
  readonly source: number;
}

/** Stores the chunks of runs, which have about 4 KiB, by number. */
export interface ChunkTable {
  /** Returns a view that is valid until the next call. */
  view(chunk: number): Buffer | undefined;
  /** Returns a copy; undefined for a chunk that was never written. */
  copy(chunk: number): Buffer | undefined;
}

/** Maximum number of mentions that are sorted together. */
const MAX_BATCH = 64 * 1024;
/** A chunk fits into a page of LMDB. */
const CHUNK_BYTES = 4000;
const FIRST_BATCH_BYTES = 2 ** 20;
/**
 * Maximum bytes of the five numbers of a mention: the length of its multihash, its form, offset,
 * length and source.
 */
const MAX_NUMBERS = 5 * 9;

/** Mentions that are not in a run yet. */
export class MentionBatch {
  readonly #starts = new Uint32Array(MAX_BATCH + 1);
  /**
   * Sort key and index of each mention, combined into one number, because typed arrays sort numbers
   * fast.
   */
  readonly #order = new Float64Array(MAX_BATCH);
  #bytes = Buffer.allocUnsafe(FIRST_BATCH_BYTES);
  #count = 0;

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Number of mentions that can be added. At 0, the batch must be written as a run. */
  get room(): number {
    return MAX_BATCH - this.#count;
  }

  add({ multihash, form, offset, length, source }: Mention): void {
    const start = this.#starts[this.#count] as number;
    if (start + multihash.length + MAX_NUMBERS > this.#bytes.length) this.#grow(multihash.length + MAX_NUMBERS);
    const head = varints([multihash.length]);
    const tail = varints([form, offset, length, source]);
    this.#bytes.set(head, start);
    this.#bytes.set(multihash, start + head.length);
    this.#bytes.set(tail, start + head.length + multihash.length);
    this.#order[this.#count] = sortKey(multihash) * MAX_BATCH + this.#count;
    this.#count += 1;
    this.#starts[this.#count] = start + head.length + multihash.length + tail.length;
  }

  /** Returns the sorted chunks, each with the key of its first mention. */
  chunks(): { readonly key: number; readonly bytes: Uint8Array }[] {
    const order = this.#order.subarray(0, this.#count).sort();
    const chunks: { key: number; bytes: Uint8Array }[] = [];
    let parts = [] as Uint8Array[];
    let size = 0;
    let key = 0;
    const end = () => {
      if (size > 0) chunks.push({ key, bytes: Buffer.concat(parts, size) });
      parts = [];
      size = 0;
    };
    for (const each of order) {
      const at = each % MAX_BATCH;
      const mention = this.#bytes.subarray(this.#starts[at], this.#starts[at + 1]);
      if (size + mention.length > CHUNK_BYTES) end();
      if (size === 0) key = Math.floor(each / MAX_BATCH);
      parts.push(mention);
      size += mention.length;
    }
    end();
    return chunks;
  }

  clear(): void {
    this.#count = 0;
  }

  #grow(room: number): void {
    const bytes = Buffer.allocUnsafe(2 * this.#bytes.length + room);
    bytes.set(this.#bytes.subarray(0, this.#starts[this.#count]));
    this.#bytes = bytes;
  }
}

/** A run: consecutive chunks in the order of keys. */
export interface MentionRun {
  readonly firstChunk: number;
  /** Key of the first mention of each chunk. */
  readonly keys: Uint32Array;
}

/** Returns the mentions of a multihash in these runs, in no order. */
export function mentionsOf(multihash: Uint8Array, runs: readonly MentionRun[], chunks: ChunkTable): Mention[] {
  const key = sortKey(multihash);
  const wanted = Buffer.from(multihash.buffer, multihash.byteOffset, multihash.length);
  const found: Mention[] = [];
  for (const { firstChunk, keys } of runs) {
    // The chunk before the first one with this key may end with mentions of the same key.
    for (let at = Math.max(0, firstNotBelow(keys, key) - 1); at < keys.length && Number(keys[at]) <= key; at += 1) {
      const chunk = chunks.view(firstChunk + at) as Buffer;
      // Most chunks do not contain the multihash, and `includes` finds that out fastest.
      if (!chunk.includes(wanted)) continue;
      const reader = new MentionReader(chunk);
      while (reader.next()) if (wanted.equals(reader.multihash)) found.push(reader.mention());
    }
  }
  return found;
}

/**
 * Yields the mentions in these runs in the order of keys. All mentions of a multihash are yielded
 * together, in the order of the log.
 */
export function* merged(runs: readonly MentionRun[], chunks: ChunkTable): Generator<readonly Mention[]> {
  const heads = new Heads(runs.map((run) => new MentionRunReader(run, chunks)).filter((reader) => reader.next()));
  for (let first = heads.first; first !== undefined; first = heads.first) {
    const { key } = first;
    const same: OwnMention[] = [];
    for (let head: MentionRunReader | undefined = first; head?.key === key; head = heads.first) {
      same.push(head.mention());
      heads.advance();
    }
    if (same.length > 1) same.sort((one, other) => one.source - other.source);
    if (same.every(({ multihash }) => same[0]?.multihash.equals(multihash))) yield same;
    else yield* Map.groupBy(same, ({ multihash }) => keyOf(multihash)).values();
  }
}

/**
 * Returns the first bytes of the digest. When all multihashes have the same function, this sorts
 * them in the order of multihashes.
 */
function sortKey(multihash: Uint8Array): number {
  let at = 0;
  // Skips the code of the function and the length of the digest.
  for (let numbers = 0; numbers < 2; at += 1) if (Number(multihash[at]) < 0x80 || at >= multihash.length) numbers += 1;
  let key = 0;
  for (let taken = 0; taken < 4; taken += 1) key = key * 256 + (multihash[at + taken] ?? 0);
  return key;
}

function firstNotBelow(keys: Uint32Array, key: number): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (Number(keys[middle]) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

interface OwnMention extends Mention {
  readonly multihash: Buffer;
}

/** Iterates over the mentions of a chunk. */
class MentionReader {
  readonly #bytes: Buffer;
  readonly #read: Varints;
  /** A view of the chunk. */
  multihash!: Buffer;
  #form: Form = 0;
  #offset = 0;
  #length = 0;
  #source = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#read = new Varints(this.#bytes);
  }

  /** Reads the next mention; false at the end. */
  next(): boolean {
    const read = this.#read;
    if (read.at >= this.#bytes.length) return false;
    const length = read.next();
    this.multihash = this.#bytes.subarray(read.at, (read.at += length));
    this.#form = read.next();
    this.#offset = read.next();
    this.#length = read.next();
    this.#source = read.next();
    return true;
  }

  mention(): OwnMention {
    const form = this.#form;
    const offset = this.#offset;
    const length = this.#length;
    const source = this.#source;
    return { multihash: Buffer.from(this.multihash), form, offset, length, source };
  }
}

/** Iterates over the mentions of a run. */
class MentionRunReader {
  readonly #run: MentionRun;
  readonly #chunks: ChunkTable;
  #at = 0;
  #chunk: MentionReader | undefined;
  key = 0;

  constructor(run: MentionRun, chunks: ChunkTable) {
    this.#run = run;
    this.#chunks = chunks;
  }

  /** Reads the next mention; false at the end. */
  next(): boolean {
    while (this.#chunk?.next() !== true) {
      if (this.#at === this.#run.keys.length) return false;
      this.#chunk = new MentionReader(this.#chunks.copy(this.#run.firstChunk + this.#at) as Buffer);
      this.#at += 1;
    }
    this.key = sortKey(this.#chunk.multihash);
    return true;
  }

  mention(): OwnMention {
    return (this.#chunk as MentionReader).mention();
  }
}

/** A binary heap of run readers; the reader with the least key is first. */
class Heads {
  readonly #readers: MentionRunReader[];

  constructor(readers: readonly MentionRunReader[]) {
    // A sorted array is a heap.
    this.#readers = readers.toSorted((one, other) => one.key - other.key);
  }

  get first(): MentionRunReader | undefined {
    return this.#readers[0];
  }

  /** Moves the first reader to its next mention. */
  advance(): void {
    const readers = this.#readers;
    if (readers[0]?.next() === false) {
      const last = readers.pop() as MentionRunReader;
      if (readers.length > 0) readers[0] = last;
    }
    for (let at = 0, least = at; ; at = least) {
      for (const below of [2 * at + 1, 2 * at + 2])
        if (below < readers.length && keyAt(readers, below) < keyAt(readers, least)) least = below;
      if (least === at) return;
      const moved = readers[at] as MentionRunReader;
      readers[at] = readers[least] as MentionRunReader;
      readers[least] = moved;
    }
  }
}

const keyAt = (readers: readonly MentionRunReader[], at: number): number => (readers[at] as MentionRunReader).key;
