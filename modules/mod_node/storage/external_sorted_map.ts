/** Maps that are sorted by name, and spill to the disk when they have too many entries. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { compareNames } from "../formats/dag_pb/dag_pb.ts";
import { inSlices, mapSteps, sortedSteps } from "../util/async/steps.ts";
import { byteLength, byteText, textBytes } from "../util/byte_text.ts";
import { isFullDisk } from "./full_disk.ts";
import { MAX_KEY, openScratch, type Scratch } from "./lmdb/scratch.ts";

/** Encodes and decodes the values that are written to the disk. */
export interface ValueCodec<T> {
  encode(value: T): Buffer;
  /** The value may keep `bytes`: nothing else uses them. */
  decode(bytes: Uint8Array): T;
}

/** A codec for JSON values. */
export const jsonCodec = <T>(): ValueCodec<T> => ({
  encode: (value) => Buffer.from(JSON.stringify(value)),
  decode: (bytes) => JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()) as T,
});

type Item<T> = readonly [name: string, value: T];
type Lists<T> = Map<number, Map<string, T>>;

/** Maximum number of entries in memory. */
const MAX_IN_MEMORY = 8192;
/** Maximum number of entries in memory when the disk is full. */
const MAX_ON_FULL_DISK = 1_000_000;
/** LMDB copies each page that a write touches and never frees that memory, so batches are small. */
const MAX_BATCH = 2048;
const pageSize = 512;
const listBytes = 4;
/**
 * A name of at most this many characters surely fits into a key: a character takes up to three
 * bytes.
 */
const SURELY_SHORT = Math.floor((MAX_KEY - listBytes) / 3);

/**
 * Numbered maps from names to values, which are read in order of the names. A few thousand entries
 * stay in memory; beyond that, they go to a file below `folder`, so that a million entries need no
 * more memory. Names that are too long for a key stay in memory. On a full disk, up to a million
 * entries stay in memory, because listing a directory must not need disk space. Supports one caller
 * at a time.
 * @throws errors of the file system
 */
export class ExternalSortedMap<T> {
  readonly #folder: string;
  readonly #codec: ValueCodec<T>;
  #inMemory: Lists<T> = new Map();
  #count = 0;
  /** Entries that are being written to the disk. */
  #flushing: Lists<T> = new Map();
  #writing: Promise<void> = Promise.resolve();
  #disk: Scratch | undefined;
  readonly #open: typeof openScratch;
  /** The disk was full, so nothing more is written to it. */
  #isFull = false;

  constructor(folder: string, form: ValueCodec<T>, open = openScratch) {
    this.#folder = folder;
    this.#codec = form;
    this.#open = open;
  }

  get(list: number, name: string): T | undefined {
    const found = this.#inMemory.get(list)?.get(name) ?? this.#flushing.get(list)?.get(name);
    if (found !== undefined || this.#disk === undefined) return found;
    const key = keyOf(list, name);
    const value = key.length > MAX_KEY ? undefined : this.#disk.table.get(key);
    return value && this.#codec.decode(value);
  }

  /**
   * Callers await the returned promise before they set more entries: this is the backpressure of
   * the disk.
   */
  set(list: number, name: string, value: T): Promise<void> | undefined {
    const mapEntries = this.#inMemory.get(list) ?? new Map<string, T>();
    mapEntries.set(name, value);
    this.#inMemory.set(list, mapEntries);
    this.#count += 1;
    return this.#count < (this.#isFull ? MAX_ON_FULL_DISK : MAX_IN_MEMORY) ? undefined : this.#startFlush();
  }

  /**
   * Yields the entries of a map in pages, in order of the bytes of their names. The map must not be
   * changed in the meantime.
   */
  async *pages(list: number): AsyncGenerator<readonly Item<T>[], void, undefined> {
    await this.#writing;
    const items = [...(this.#inMemory.get(list) ?? [])];
    const inMemoryItems = await inSlices(sortedSteps(items, ([one], [other]) => compareNames(one, other)));
    let at = 0;
    for await (const page of this.#onDisk(list)) {
      const merged: Item<T>[] = [];
      for (const item of page) {
        let order = -1;
        for (let next = inMemoryItems[at]; next !== undefined && order < 0; next = inMemoryItems[at]) {
          order = compareNames(next[0], item[0]);
          if (order > 0) break;
          merged.push(next);
          at += 1;
        }
        // Entries in memory are newer than those on the disk.
        if (order !== 0) merged.push(item);
      }
      yield merged;
    }
    for (; at < inMemoryItems.length; at += pageSize) yield inMemoryItems.slice(at, at + pageSize);
  }

  /**
   * Yields the values of all maps in any order. Values that are set in the meantime may be missing.
   */
  *values(): Generator<T, void, undefined> {
    for (const lists of [this.#inMemory, this.#flushing]) for (const list of lists.values()) yield* list.values();
    let after: Buffer = Buffer.of();
    for (;;) {
      const page = this.#disk?.page({ start: after, limit: pageSize }) ?? [];
      for (const { value } of page) yield this.#codec.decode(value);
      const last = page.at(-1);
      if (last === undefined) return;
      after = next(last.key);
    }
  }

  /** Removes all entries; the map can be used again. */
  async clear(): Promise<void> {
    const disk = this.#disk;
    const writing = this.#writing;
    this.#inMemory = new Map();
    this.#flushing = new Map();
    this.#count = 0;
    this.#isFull = false;
    this.#disk = undefined;
    this.#writing = Promise.resolve();
    await writing.catch(() => {});
    await disk?.close();
  }

  async #startFlush(): Promise<void> {
    await this.#writing;
    try {
      this.#disk ??= await this.#open(this.#folder);
    } catch (error) {
      return this.#stay(error);
    }
    this.#flushing = this.#inMemory;
    this.#inMemory = tooLongForKeys(this.#flushing);
    this.#count = 0;
    const lists = this.#flushing;
    this.#writing = this.#write(this.#disk, lists).catch((error: unknown) => this.#stay(error, lists));
    this.#writing.catch(() => {});
  }

  /**
   * Keeps entries in memory that a full disk did not take.
   * @throws any other error, and the error of the full disk when there are too many entries
   */
  #stay(error: unknown, unwritten?: Lists<T>): void {
    if (!isFullDisk(error)) throw error;
    this.#isFull = true;
    if (unwritten !== undefined && this.#flushing === unwritten) {
      for (const [list, values] of unwritten) {
        // Values that were set during the failed write are newer, so they take precedence.
        this.#inMemory.set(list, new Map([...values, ...(this.#inMemory.get(list) ?? [])]));
        this.#count += values.size;
      }
      this.#flushing = new Map();
    }
    if (this.#count >= MAX_ON_FULL_DISK) throw error;
  }

  async #write(disk: Scratch, lists: Lists<T>): Promise<void> {
    const entries: { readonly key: Buffer; readonly value: T }[] = [];
    for (const [list, values] of lists) {
      const short = [...values].filter(([name]) => !isTooLong(name));
      const keyed = mapSteps(short, ([name, value]) => ({ key: keyOf(list, name), value }));
      for (const entry of await inSlices(keyed)) entries.push(entry);
    }
    const sorted = await inSlices(sortedSteps(entries, (one, other) => Buffer.compare(one.key, other.key)));
    for (let at = 0; at < sorted.length; at += MAX_BATCH) {
      const encoded = ({ key, value }: (typeof sorted)[number]) => ({ key, value: this.#codec.encode(value) });
      const batch = await inSlices(mapSteps(sorted.slice(at, at + MAX_BATCH), encoded));
      await disk.write(() => {
        for (const { key, value } of batch) disk.table.put(key, value);
      });
    }
    if (this.#flushing === lists) this.#flushing = new Map();
  }

  /** Yields the entries of a map that are on the disk. */
  async *#onDisk(list: number): AsyncGenerator<readonly Item<T>[], void, undefined> {
    let start: Buffer = keyOf(list, "");
    const end = keyOf(list + 1, "");
    for (;;) {
      const page = this.#disk?.page({ start, end, limit: pageSize }) ?? [];
      const last = page.at(-1);
      if (last === undefined) return;
      yield page.map(({ key, value }) => [byteText(key.subarray(listBytes)), this.#codec.decode(value)]);
      if (page.length < pageSize) return;
      start = next(last.key);
      await nextTurn();
    }
  }
}

function keyOf(list: number, name: string): Buffer {
  const bytes = textBytes(name);
  const key = Buffer.allocUnsafe(listBytes + bytes.length);
  key.writeUInt32BE(list);
  key.set(bytes, listBytes);
  return key;
}

/** Whether a name is too long for a key. */
const isTooLong = (name: string): boolean => name.length > SURELY_SHORT && listBytes + byteLength(name) > MAX_KEY;

/** Returns the smallest key that is greater than `key`. */
const next = (key: Buffer): Buffer => Buffer.concat([key, Buffer.of(0)]);

/** Returns the entries whose names are too long for a key. */
function tooLongForKeys<T>(lists: Lists<T>): Lists<T> {
  const left: Lists<T> = new Map();
  for (const [list, values] of lists) {
    const long = [...values].filter(([name]) => isTooLong(name));
    if (long.length > 0) left.set(list, new Map(long));
  }
  return left;
}
