/** The segment files that this host has: segments that it wrote, and chunks of others. */
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { diskFs, type SegmentFile, SegmentFiles, type SegmentFs } from "../../blockstore/segments/files.ts";
import { type BytesLocation, numberOf } from "../../blockstore/segments/format.ts";
import type { ReadableSegments } from "../../blockstore/segments/read_coalescer.ts";
import { PRIVATE_FILE, PRIVATE_FOLDER } from "../../private_files.ts";
import { CHUNK_BYTES, Ranges, type RangesDeps } from "./ranges.ts";

export interface SegmentCacheDeps extends Pick<RangesDeps, "objects" | "find" | "numberOf"> {
  readonly folder: string;
  /** Maximum bytes of the cache. Segments that are not in the store yet do not count. */
  readonly maxBytes: number;
  readonly fs?: SegmentFs | undefined;
}

/** Number of keys per segment: one for each chunk and one for the whole file. */
const PARTS = 2048;
const WHOLE = PARTS - 1;
const keyOf = (segment: number, part: number): number => segment * PARTS + part;
const segmentOf = (key: number): number => Math.floor(key / PARTS);
const partOf = (key: number): number => key % PARTS;

const chunkName = /^(\d{8,})-(\d{4})$/;
const nameOfChunk = (key: number): string =>
  `${String(segmentOf(key)).padStart(8, "0")}-${String(partOf(key)).padStart(4, "0")}`;

/**
 * A cache of segments. Except for segments that are not in the store yet, all of it can be fetched
 * again. Damage is found by callers that check blocks; they call `drop`.
 */
export class SegmentCache implements ReadableSegments {
  /** Files of segments that this host wrote. */
  readonly own: SegmentFiles;
  readonly #deps: SegmentCacheDeps;
  readonly #chunks: SegmentFiles;
  readonly #ranges: Ranges;
  /** Bytes by key, in the order of use. */
  readonly #cached = new Map<number, number>();
  /** Segments that are not in the store yet. */
  readonly #needed = new Set<number>();
  #bytes = 0;

  private constructor(deps: SegmentCacheDeps) {
    this.#deps = deps;
    const fs = withoutFlushes(deps.fs ?? diskFs);
    this.own = new SegmentFiles(join(deps.folder, "segments"), fs);
    this.#chunks = new SegmentFiles(join(deps.folder, "chunks"), fs, nameOfChunk);
    this.#ranges = new Ranges({
      ...deps,
      isCached: (segment, chunk) => this.#cached.has(keyOf(segment, chunk)) || this.#cached.has(keyOf(segment, WHOLE)),
      store: (segment, chunk, bytes) => this.#cacheChunk(keyOf(segment, chunk), bytes),
    });
  }

  /**
   * Opens the cache and adopts the files of an earlier process that belong to segments of the
   * store.
   * @throws errors of the file system
   */
  static async open(deps: SegmentCacheDeps): Promise<SegmentCache> {
    const cache = new SegmentCache(deps);
    for (const { folder } of [cache.own, cache.#chunks]) await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER });
    for (const name of await readdir(cache.own.folder)) {
      const segment = numberOf(name);
      const found = segment === undefined ? undefined : deps.find(segment);
      if (segment !== undefined && found !== undefined) cache.#add(keyOf(segment, WHOLE), found.bytes);
      else await rm(join(cache.own.folder, name), { force: true });
    }
    for (const name of await readdir(cache.#chunks.folder)) {
      const [, segment, chunk] = chunkName.exec(name) ?? [];
      const bytes = deps.find(Number(segment))?.bytes ?? 0;
      const length = Math.min(CHUNK_BYTES, bytes - Number(chunk) * CHUNK_BYTES);
      if (length > 0) cache.#add(keyOf(Number(segment), Number(chunk)), length);
      else await rm(join(cache.#chunks.folder, name), { force: true });
    }
    cache.#evict();
    return cache;
  }

  /** Whether these bytes can be read without a request. */
  has({ segment, offset, length }: BytesLocation): boolean {
    if (this.#needed.has(segment) || this.#cached.has(keyOf(segment, WHOLE))) return true;
    for (let chunk = Math.floor(offset / CHUNK_BYTES); chunk * CHUNK_BYTES < offset + length; chunk += 1)
      if (!this.#cached.has(keyOf(segment, chunk))) return false;
    return true;
  }

  /** Maximum bytes of the cache. */
  get max(): number {
    return this.#deps.maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  use<T>(segment: number, use: (file: Pick<SegmentFile, "read">) => Promise<T>): Promise<T> {
    if (this.#needed.has(segment)) return this.own.use(segment, use);
    if (this.#touch(keyOf(segment, WHOLE))) {
      return this.own.use(segment, use).catch(() => {
        this.#remove(keyOf(segment, WHOLE));
        return this.use(segment, use);
      });
    }
    return use({ read: (into, at) => this.#read(segment, into, at) });
  }

  ready(segment: number, offset: number, length: number): Pick<SegmentFile, "readInline"> | undefined {
    if (this.#needed.has(segment) || this.#touch(keyOf(segment, WHOLE))) return this.own.ready(segment);
    const chunk = Math.floor(offset / CHUNK_BYTES);
    const start = chunk * CHUNK_BYTES;
    if (offset + length > start + CHUNK_BYTES || !this.#touch(keyOf(segment, chunk))) return undefined;
    const file = this.#chunks.ready(keyOf(segment, chunk));
    if (file?.readInline === undefined) return undefined;
    return { readInline: (into, at) => file.readInline?.(into, at - start) ?? 0 };
  }

  /** Begins a segment of this host, which stays in the cache at least until `stored`. */
  begin(segment: number): void {
    this.#needed.add(segment);
  }

  /** Records that a segment of this host is in the store. */
  stored(segment: number, bytes: number): void {
    if (!this.#needed.delete(segment)) return;
    this.#add(keyOf(segment, WHOLE), bytes);
    this.#evict();
  }

  /**
   * Drops damaged bytes from the cache. Returns whether they will be read from the store from now
   * on.
   */
  drop({ segment, offset, length }: BytesLocation): boolean {
    if (this.#needed.has(segment)) return false;
    let dropped = this.#remove(keyOf(segment, WHOLE));
    for (let chunk = Math.floor(offset / CHUNK_BYTES); chunk * CHUNK_BYTES < offset + length; chunk += 1)
      dropped = this.#remove(keyOf(segment, chunk)) || dropped;
    return dropped;
  }

  /** Removes a segment that no longer belongs to the store. */
  forget(segment: number): void {
    if (this.#needed.delete(segment)) this.own.remove(segment).catch(() => {});
    for (let part = 0; part < PARTS; part += 1) this.#remove(keyOf(segment, part));
  }

  async close(): Promise<void> {
    await this.#ranges.close();
    await this.own.close();
    await this.#chunks.close();
  }

  async #read(segment: number, into: readonly Uint8Array[], at: number): Promise<number> {
    const wanted = into.reduce((sum, { length }) => sum + length, 0);
    const end = Math.min(at + wanted, this.#deps.find(segment)?.bytes ?? at + wanted);
    const reads: Promise<unknown>[] = [];
    for (let from = at; from < end; ) {
      const chunk = Math.floor(from / CHUNK_BYTES);
      const to = Math.min(end, (chunk + 1) * CHUNK_BYTES);
      reads.push(
        this.#readChunk(segment, chunk, {
          into: slices(into, from - at, to - at),
          skipped: from - chunk * CHUNK_BYTES,
        }),
      );
      this.#ranges.reading(segment, chunk);
      from = to;
    }
    await Promise.all(reads);
    return Math.max(0, end - at);
  }

  async #readChunk(
    segment: number,
    chunk: number,
    { into, skipped }: { readonly into: readonly Uint8Array[]; readonly skipped: number },
  ): Promise<void> {
    const key = keyOf(segment, chunk);
    if (this.#touch(key)) {
      const wanted = into.reduce((sum, { length }) => sum + length, 0);
      const read = await this.#chunks.use(key, (file) => file.read(into, skipped)).catch(() => 0);
      if (read === wanted) return;
      // Somebody truncated or deleted the file.
      this.#remove(key);
    }
    const bytes = await this.#ranges.fetch(segment, chunk);
    let from = skipped;
    for (const part of into) {
      part.set(bytes.subarray(from, from + part.length));
      from += part.length;
    }
  }

  async #cacheChunk(key: number, bytes: Uint8Array): Promise<void> {
    try {
      const name = nameOfChunk(key);
      await writeFile(join(this.#chunks.folder, name), bytes, { mode: PRIVATE_FILE });
      // The segment may have been forgotten in the meantime.
      if (this.#deps.find(segmentOf(key)) === undefined) await rm(join(this.#chunks.folder, name), { force: true });
      else this.#add(key, bytes.length);
      this.#evict();
    } catch {
      // The disk is full: the chunk is fetched again when it is read again.
    }
  }

  #touch(key: number): boolean {
    const bytes = this.#cached.get(key);
    if (bytes === undefined) return false;
    this.#cached.delete(key);
    this.#cached.set(key, bytes);
    return true;
  }

  #add(key: number, bytes: number): void {
    if (this.#cached.has(key)) return;
    this.#cached.set(key, bytes);
    this.#bytes += bytes;
  }

  #evict(): void {
    for (const key of this.#cached.keys()) {
      if (this.#bytes <= this.#deps.maxBytes) return;
      this.#remove(key);
    }
  }

  /** Removes a part; returns whether it was in the cache. */
  #remove(key: number): boolean {
    const bytes = this.#cached.get(key);
    if (bytes === undefined) return false;
    this.#cached.delete(key);
    this.#bytes -= bytes;
    const removing = partOf(key) === WHOLE ? this.own.remove(segmentOf(key)) : this.#chunks.remove(key);
    // The next start deletes files that could not be deleted now.
    removing.catch(() => {});
    return true;
  }
}

/** Returns views of the arrays for a range of bytes, as if the arrays were one. */
function slices(arrays: readonly Uint8Array[], from: number, to: number): Uint8Array[] {
  const parts: Uint8Array[] = [];
  let start = 0;
  for (const array of arrays) {
    const part = array.subarray(Math.max(0, from - start), Math.max(0, to - start));
    if (part.length > 0) parts.push(part);
    start += array.length;
  }
  return parts;
}

/** Skips flushes, because the files of the cache need not be durable. */
function withoutFlushes(fs: SegmentFs): SegmentFs {
  return {
    ...fs,
    async open(path, create) {
      const file = await fs.open(path, create);
      return {
        read: (into, at) => file.read(into, at),
        write: (from, at) => file.write(from, at),
        sync: async () => {},
        truncate: (length) => file.truncate(length),
        size: () => file.size(),
        close: () => file.close(),
        ...(file.readInline !== undefined && { readInline: file.readInline.bind(file) }),
      };
    },
    syncFolder: async () => {},
  };
}
