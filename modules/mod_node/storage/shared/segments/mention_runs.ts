/**
 * What the log says of many blocks, sorted by their digests, on the disk of this host: long before all of it is in the index each
 * block can be found, and is then brought there in the order in which the index has it.
 */
import { type Form, keyOf, Varints, varints } from "../../blockstore/segments/format.ts";
import type { IndexedBlock } from "./index_file.ts";

/** A block as one entry of the log has it. */
export interface Mention extends IndexedBlock {
  /** Number of that entry, in the order of the log. */
  readonly source: number;
}

/** Where chunks of runs are kept: parts of some 4 KiB, by number. */
export interface ChunkTable {
  /** A view that holds until the next call. */
  view(chunk: number): Buffer | undefined;
  /** Undefined for one that was never written. */
  copy(chunk: number): Buffer | undefined;
}

/** Mentions that are sorted at a time. */
const MAX_BATCH = 64 * 1024;
/** As much as fits a page of LMDB. */
const CHUNK_BYTES = 4000;
const FIRST_BATCH_BYTES = 2 ** 20;
/** Of a mention: its numbers, and the length of its multihash. */
const MAX_NUMBERS = 5 * 9;

/** Mentions that are not in a run yet. */
export class MentionBatch {
  readonly #starts = new Uint32Array(MAX_BATCH + 1);
  /** Key and number of each, as one number: typed arrays of these are sorted fast. */
  readonly #order = new Float64Array(MAX_BATCH);
  #bytes = Buffer.allocUnsafe(FIRST_BATCH_BYTES);
  #count = 0;

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** How many can be added; at 0 it is to be made a run. */
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

  /** In order, with the key of the first mention of each. */
  chunks(): { readonly key: number; readonly bytes: Uint8Array }[] {
    const order = this.#order.subarray(0, this.#count).sort();
    const chunks: { key: number; bytes: Uint8Array }[] = [];
    let [parts, size, key] = [[] as Uint8Array[], 0, 0];
    const end = () => {
      if (size > 0) chunks.push({ key, bytes: Buffer.concat(parts, size) });
      [parts, size] = [[], 0];
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

/** A run: consecutive chunks, in the order of keys. */
export interface MentionRun {
  readonly firstChunk: number;
  /** Of each chunk the key of its first mention. */
  readonly keys: Uint32Array;
}

/** Mentions of a multihash in these runs, in no order. */
export function mentionsOf(multihash: Uint8Array, runs: readonly MentionRun[], chunks: ChunkTable): Mention[] {
  const key = sortKey(multihash);
  const wanted = Buffer.from(multihash.buffer, multihash.byteOffset, multihash.length);
  const found: Mention[] = [];
  for (const { firstChunk, keys } of runs) {
    // The chunk before the first one that begins with this key may end with it.
    for (let at = Math.max(0, firstNotBelow(keys, key) - 1); at < keys.length && Number(keys[at]) <= key; at += 1) {
      const chunk = chunks.view(firstChunk + at) as Buffer;
      // Most have nothing of it, which is seen fastest like this.
      if (!chunk.includes(wanted)) continue;
      const reader = new MentionReader(chunk);
      while (reader.next()) if (wanted.equals(reader.multihash)) found.push(reader.mention());
    }
  }
  return found;
}

/** Everything in these runs, in the order of keys: of each multihash all mentions together, in the order of the log. */
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

/** The first bytes of the digest: where all multihashes are of one function, their order is that of these. */
function sortKey(multihash: Uint8Array): number {
  let at = 0;
  // The code of the function, and the length of the digest.
  for (let numbers = 0; numbers < 2; at += 1) if (Number(multihash[at]) < 0x80 || at >= multihash.length) numbers += 1;
  let key = 0;
  for (let taken = 0; taken < 4; taken += 1) key = key * 256 + (multihash[at + taken] ?? 0);
  return key;
}

function firstNotBelow(keys: Uint32Array, key: number): number {
  let [low, high] = [0, keys.length];
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

/** Goes through the mentions of a chunk. */
class MentionReader {
  readonly #bytes: Buffer;
  readonly #read: Varints;
  /** A view. */
  multihash!: Buffer;
  #form: Form = 0;
  #offset = 0;
  #length = 0;
  #source = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#read = new Varints(this.#bytes);
  }

  /** False at the end. */
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
    const [form, offset, length, source] = [this.#form, this.#offset, this.#length, this.#source];
    return { multihash: Buffer.from(this.multihash), form, offset, length, source };
  }
}

/** Goes through a run. */
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

  /** False at the end. */
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

/** Readers of runs, the one with the least key first: a binary heap. */
class Heads {
  readonly #readers: MentionRunReader[];

  constructor(readers: readonly MentionRunReader[]) {
    // Sorted, it is a heap.
    this.#readers = readers.toSorted((one, other) => one.key - other.key);
  }

  get first(): MentionRunReader | undefined {
    return this.#readers[0];
  }

  /** The first one goes on to its next mention. */
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
