/** Maps that are sorted by name, and spill to the disk when they have too many entries. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { compareNames } from "../formats/dag_pb/dag_pb.ts";
import { inSlices, mapSteps, sortedSteps } from "../util/async/steps.ts";
import { isFullDisk } from "./full_disk.ts";
import { MAX_KEY, openScratch, type Scratch } from "./lmdb/scratch.ts";

/** How values are encoded on the disk. */
export interface ValueCodec<T> {
  encode(value: T): Buffer;
  /** `bytes` belongs to the value. */
  decode(bytes: Uint8Array): T;
}

/** For values that are JSON. */
export const jsonCodec = <T>(): ValueCodec<T> => ({
  encode: (value) => Buffer.from(JSON.stringify(value)),
  decode: (bytes) => JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()) as T,
});

type Item<T> = readonly [name: string, value: T];
type Lists<T> = Map<number, Map<string, T>>;

/** Entries that are held in memory. */
const MAX_IN_MEMORY = 8192;
/** The same when the disk is full. */
const MAX_ON_FULL_DISK = 1_000_000;
/** LMDB copies each page that a write touches, and never gives that memory back. */
const MAX_BATCH = 2048;
const pageSize = 512;
const listBytes = 4;
/** Characters, each of at most three bytes, that a key has room for. */
const SURELY_SHORT = Math.floor((MAX_KEY - listBytes) / 3);

/**
 * Numbered maps from names to values, which are read in order of the names. Up to some thousand entries in all are held
 * in memory; beyond that they go to a file below `folder`, so a million entries take no more memory, except for names
 * that are too long for a key. On a full disk they stay in memory, as far as that is bearable: listing a directory needs
 * no room. One caller at a time. @throws errors of the file system
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
  /** The disk was full: nothing more is written to it. */
  #isFull = false;

  constructor(folder: string, form: ValueCodec<T>, open = openScratch) {
    this.#folder = folder;
    this.#codec = form;
    this.#open = open;
  }

  get(list: number, name: string): T | undefined {
    const held = this.#inMemory.get(list)?.get(name) ?? this.#flushing.get(list)?.get(name);
    if (held !== undefined || this.#disk === undefined) return held;
    const key = keyOf(list, name);
    const value = key.length > MAX_KEY ? undefined : this.#disk.table.get(key);
    return value && this.#codec.decode(value);
  }

  /** Callers await what it returns before they set more: that is the backpressure of the disk. */
  set(list: number, name: string, value: T): Promise<void> | undefined {
    const held = this.#inMemory.get(list) ?? new Map<string, T>();
    held.set(name, value);
    this.#inMemory.set(list, held);
    this.#count += 1;
    return this.#count < (this.#isFull ? MAX_ON_FULL_DISK : MAX_IN_MEMORY) ? undefined : this.#startFlush();
  }

  /** The entries of a map in order of their names' bytes, in pages. Nothing may be set in it meanwhile. */
  async *pages(list: number): AsyncGenerator<readonly Item<T>[], void, undefined> {
    await this.#writing;
    const items = [...(this.#inMemory.get(list) ?? [])];
    const held = await inSlices(sortedSteps(items, ([one], [other]) => compareNames(one, other)));
    let at = 0;
    for await (const page of this.#onDisk(list)) {
      const merged: Item<T>[] = [];
      for (const item of page) {
        let order = -1;
        for (let next = held[at]; next !== undefined && order < 0; next = held[at]) {
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
    for (; at < held.length; at += pageSize) yield held.slice(at, at + pageSize);
  }

  /** The values of all maps, in any order; values that are set meanwhile may be missing. */
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

  /** Keeps in memory what a full disk did not take. @throws any other error, and that one when it is too much */
  #stay(error: unknown, unwritten?: Lists<T>): void {
    if (!isFullDisk(error)) throw error;
    this.#isFull = true;
    if (unwritten !== undefined && this.#flushing === unwritten) {
      for (const [list, values] of unwritten) {
        // What was set meanwhile is newer.
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

  /** The entries of a map that are on the disk. */
  async *#onDisk(list: number): AsyncGenerator<readonly Item<T>[], void, undefined> {
    let start: Buffer = keyOf(list, "");
    const end = keyOf(list + 1, "");
    for (;;) {
      const page = this.#disk?.page({ start, end, limit: pageSize }) ?? [];
      const last = page.at(-1);
      if (last === undefined) return;
      yield page.map(({ key, value }) => [key.toString("utf8", listBytes), this.#codec.decode(value)]);
      if (page.length < pageSize) return;
      start = next(last.key);
      await nextTurn();
    }
  }
}

function keyOf(list: number, name: string): Buffer {
  const key = Buffer.allocUnsafe(listBytes + Buffer.byteLength(name));
  key.writeUInt32BE(list);
  key.write(name, listBytes);
  return key;
}

/** For a key. */
const isTooLong = (name: string): boolean =>
  name.length > SURELY_SHORT && listBytes + Buffer.byteLength(name) > MAX_KEY;

/** The smallest key after another one. */
const next = (key: Buffer): Buffer => Buffer.concat([key, Buffer.of(0)]);

/** The entries whose names are too long for a key. */
function tooLongForKeys<T>(lists: Lists<T>): Lists<T> {
  const left: Lists<T> = new Map();
  for (const [list, values] of lists) {
    const long = [...values].filter(([name]) => isTooLong(name));
    if (long.length > 0) left.set(list, new Map(long));
  }
  return left;
}
