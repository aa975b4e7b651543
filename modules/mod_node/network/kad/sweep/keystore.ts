/**
 * Stores the keys that are announced regularly on disk, by region. They are collected again for
 * each cycle, and keys that are added meanwhile join them. The store belongs to one host: hosts of
 * a shared store each have the keys of their part.
 */

import { pagedRange } from "../../../storage/metadata/paged_range.ts";
import type { MetadataStore } from "../../../storage/metadata/store.ts";
import { ownBytes } from "../../../util/own_bytes.ts";
import { bitOf, type HasKadId, isWithin, kadIdOf, type Prefix, prefixesBelow } from "./keyspace.ts";

/** A block whose provider records have to be renewed. */
export interface SweepKey extends HasKadId {
  readonly multihash: Uint8Array;
}

export const sweepKey = (multihash: Uint8Array): SweepKey => ({ multihash, kadId: kadIdOf(multihash) });

/** Identifies a collection of keys, with its time in milliseconds since 1970. */
export interface Collected {
  readonly at: number;
  /** Identifies the selection of keys: if it changes, the keys are collected again. */
  readonly from: string;
}

interface State extends Collected {
  readonly generation: number;
  readonly size: number;
  /** The bits of `present`, in base64. */
  readonly present: string;
}

const STATE_KEY = "routing/sweep/keys";
const chunksOf = (generation: number): string => `routing/sweep/keys/${generation}/`;
/** Number of leading bits that keys in one bucket share. */
const BUCKET_BITS = 8;
/** Number of leading bits for which the store knows whether any key exists. */
const PRESENCE_BITS = 16;
/** Milliseconds until added keys are written; a crash loses them until the next collection. */
const WRITE_AFTER_MS = 1000;

/** Keys that are waiting to be written. */
class Pending {
  readonly #byBucket = new Map<number, Uint8Array[]>();
  count = 0;

  add({ multihash, kadId }: SweepKey): void {
    const bucket = kadId[0] as number;
    const keys = this.#byBucket.get(bucket);
    if (keys === undefined) this.#byBucket.set(bucket, [multihash]);
    else keys.push(multihash);
    this.count += 1;
  }

  /** Returns one chunk per bucket, and clears the keys. */
  take(): readonly (readonly [bucket: number, chunk: Uint8Array])[] {
    const chunks = [...this.#byBucket].map(([bucket, keys]) => [bucket, packed(keys)] as const);
    this.#byBucket.clear();
    this.count = 0;
    return chunks;
  }
}

export class Keystore {
  readonly #metadata: MetadataStore;
  /** Returns the number of keys to write, and to yield, at a time. */
  readonly #batchSize: () => number;
  #generation = 0;
  #collected: Collected | undefined;
  #size = 0;
  #present = new Uint8Array(2 ** PRESENCE_BITS / 8);
  readonly #pending = new Pending();
  /** State of the collection in progress. */
  #next: { readonly pending: Pending; present: Uint8Array; size: number } | undefined;
  #sequence = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(metadata: MetadataStore, batchSize: () => number) {
    this.#metadata = metadata;
    this.#batchSize = batchSize;
  }

  /** Loads what was stored when the node stopped. An incomplete collection is dropped. */
  async open(): Promise<void> {
    const bytes = await this.#metadata.get(STATE_KEY);
    if (bytes !== undefined) {
      const { generation, size, present, at, from } = JSON.parse(Buffer.from(bytes).toString()) as State;
      this.#generation = generation;
      this.#size = size;
      this.#present = new Uint8Array(Buffer.from(present, "base64"));
      this.#collected = { at, from };
    }
    for await (const [key] of pagedRange(this.#metadata, chunksOf(this.#generation))) {
      this.#sequence = Math.max(this.#sequence, Number.parseInt(key.slice(-SEQUENCE_DIGITS), 16) + 1);
    }
    await this.#dropOthers();
  }

  /** The current collection; undefined if nothing was collected yet. */
  get collected(): Collected | undefined {
    return this.#collected;
  }

  /**
   * Number of keys; a key that is both added and collected may count twice until the next
   * collection.
   */
  get size(): number {
    return this.#size;
  }

  /**
   * Whether there are keys with that prefix. For a prefix of more than 16 bits, only its first 16
   * bits are checked.
   */
  has(prefix: Prefix): boolean {
    const bits = prefix.slice(0, PRESENCE_BITS);
    const count = 2 ** (PRESENCE_BITS - bits.length);
    const first = Number.parseInt(bits || "0", 2) * count;
    if (count < 8) {
      for (let at = first; at < first + count; at += 1) if (isSet(this.#present, at)) return true;
      return false;
    }
    for (let at = first / 8; at < (first + count) / 8; at += 1) if (this.#present[at] !== 0) return true;
    return false;
  }

  add(keys: readonly SweepKey[]): void {
    if (this.#closed) return;
    for (const key of keys) {
      this.#pending.add(key);
      this.#size += 1;
      set(this.#present, key);
      if (this.#next === undefined) continue;
      this.#next.pending.add(key);
      this.#next.size += 1;
      set(this.#next.present, key);
    }
    if (this.#pending.count >= this.#batchSize()) void this.#write().catch(() => undefined);
    else this.#timer ??= setTimeout(() => void this.#write().catch(() => undefined), WRITE_AFTER_MS).unref();
  }

  /**
   * Collects the keys again. The previous ones stay in use until the collection is complete, and if
   * the source fails.
   */
  async collect(source: AsyncIterable<SweepKey>, about: Collected): Promise<void> {
    const generation = this.#generation + 1;
    const next = { pending: new Pending(), present: new Uint8Array(2 ** PRESENCE_BITS / 8), size: 0 };
    this.#next = next;
    try {
      for await (const key of source) {
        next.pending.add(key);
        next.size += 1;
        set(next.present, key);
        if (next.pending.count >= this.#batchSize()) await this.#put(generation, next.pending);
      }
      await this.#put(generation, next.pending);
      await this.#flush();
      this.#generation = generation;
      this.#collected = about;
      this.#size = next.size;
      this.#present = next.present;
      // Writes the keys that were added during the previous write.
      await this.#put(generation, next.pending);
    } finally {
      this.#next = undefined;
    }
    await this.#dropOthers();
  }

  /** Yields the keys of a region, each once, in batches. */
  async *within(prefix: Prefix): AsyncGenerator<readonly SweepKey[], void, undefined> {
    await this.#flush();
    let batch: SweepKey[] = [];
    for (const bucket of bucketsOf(prefix)) {
      const seen = new Set<string>();
      for await (const [, chunk] of pagedRange(this.#metadata, chunksOf(this.#generation) + nameOf(bucket))) {
        for (const multihash of unpacked(chunk)) {
          const key = sweepKey(multihash);
          const name = Buffer.from(multihash).toString("latin1");
          if (!isWithin(key, prefix) || seen.has(name)) continue;
          seen.add(name);
          batch.push(key);
          if (batch.length < this.#batchSize()) continue;
          yield batch;
          batch = [];
        }
      }
    }
    if (batch.length > 0) yield batch;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#flush().catch(() => undefined);
  }

  async #flush(): Promise<void> {
    await this.#write();
  }

  #write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing
      .catch(() => undefined)
      .then(() => (this.#pending.count === 0 ? undefined : this.#put(this.#generation, this.#pending)));
    return this.#writing;
  }

  /** Writes one chunk per bucket; for the current generation also the state. */
  async #put(generation: number, pending: Pending): Promise<void> {
    const chunks = pending.take();
    const sequence = (this.#sequence++).toString(16).padStart(SEQUENCE_DIGITS, "0");
    const state = generation === this.#generation ? this.#state() : undefined;
    await this.#metadata.transaction((writer) => {
      for (const [bucket, chunk] of chunks) writer.put(`${chunksOf(generation)}${nameOf(bucket)}${sequence}`, chunk);
      if (state !== undefined) writer.put(STATE_KEY, state);
    });
  }

  #state(): Uint8Array {
    const state: State = {
      generation: this.#generation,
      size: this.#size,
      at: this.#collected?.at ?? 0,
      from: this.#collected?.from ?? "",
      present: Buffer.from(this.#present).toString("base64"),
    };
    return Buffer.from(JSON.stringify(state));
  }

  /** Deletes the chunks of other generations, page by page. */
  async #dropOthers(): Promise<void> {
    const own = chunksOf(this.#generation);
    let page: string[] = [];
    const drop = async () => {
      const keys = page;
      page = [];
      await this.#metadata.transaction((writer) => {
        for (const key of keys) writer.delete(key);
      });
    };
    for await (const [key] of pagedRange(this.#metadata, `${STATE_KEY}/`)) {
      if (!key.startsWith(own)) page.push(key);
      if (page.length >= DROPPED_AT_ONCE) await drop();
    }
    if (page.length > 0) await drop();
  }
}

const DROPPED_AT_ONCE = 1024;
const SEQUENCE_DIGITS = 10;

const nameOf = (bucket: number): string => `${bucket.toString(16).padStart(2, "0")}/`;

const bucketsOf = (prefix: Prefix): readonly number[] =>
  prefixesBelow(prefix.slice(0, BUCKET_BITS), BUCKET_BITS).map((each) => Number.parseInt(each, 2));

function set(bits: Uint8Array, { kadId }: HasKadId): void {
  const at = (kadId[0] as number) * 32 + ((kadId[1] as number) >> 3);
  bits[at] = (bits[at] as number) | (0x80 >> ((kadId[1] as number) & 7));
}

const isSet = (bits: Uint8Array, at: number): boolean => bitOf(bits, at) === 1;

/**
 * Concatenates multihashes, each after its length. One byte suffices for the length, because
 * identity hashes are never announced.
 */
function packed(multihashes: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(multihashes.reduce((sum, { length }) => sum + 1 + length, 0));
  let at = 0;
  for (const multihash of multihashes) {
    bytes[at] = multihash.length;
    bytes.set(multihash, at + 1);
    at += 1 + multihash.length;
  }
  return bytes;
}

function* unpacked(bytes: Uint8Array): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += 1 + (bytes[at] as number)) {
    yield ownBytes(bytes.subarray(at + 1, at + 1 + (bytes[at] as number)));
  }
}
