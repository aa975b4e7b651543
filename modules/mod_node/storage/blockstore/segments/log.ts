/** The log that consists of all segments: one writer, large writes, shared flushes. */
import { Gathering } from "../../../util/async/gathering.ts";
import { failure, type NodeError } from "../../../util/errors.ts";
import type { Block } from "../store.ts";
import { type SegmentFile, type SegmentFiles, writeAll } from "./files.ts";
import {
  type BlockLocation,
  offsetAt,
  type Position,
  positionAt,
  sectionHead,
  segmentAt,
  segmentHeader,
} from "./format.ts";
import { isIntact, SectionReader } from "./section_reader.ts";

interface Item {
  readonly position: Position;
  readonly parts: readonly Uint8Array[];
  readonly bytes: number;
  readonly location: BlockLocation | undefined;
}

interface Waiter {
  /** The position up to which the log must be durable. */
  readonly target: Position;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export interface LogOptions {
  /** A segment that reaches this length is followed by a new one. */
  readonly segmentBytes: number;
  /** Maximum bytes that may wait to be written. */
  readonly bufferedBytes: number;
  /** Called when more of the log has become durable. */
  readonly onSynced: () => void;
}

/**
 * With this many bytes or items waiting, a write begins immediately; with fewer, it waits a moment.
 */
const EAGER_BYTES = 1024 * 1024;
const EAGER_ITEMS = 512;
const LINGER_MS = 25;
/** Limits of one write: half of the buffer, so that the next write is collected in the meantime. */
const MAX_WRITE_BYTES = 2 * 1024 * 1024;
const MAX_WRITE_PARTS = 1024;
/**
 * Number of bytes that are flushed even when nobody waits, because the index only contains durable
 * data.
 */
const MAX_UNSYNCED_BYTES = 64 * 1024 * 1024;

/**
 * The writer of the log. Appends get their position immediately and are written later, in order.
 * When a write or flush fails, all waiting callers are rejected and nothing is dropped; the next
 * `sync` tries again.
 */
export class Log {
  readonly #files: SegmentFiles;
  readonly #options: LogOptions;
  /** Lengths of all segments, including data that waits to be written. */
  readonly lengths: Map<number, number>;
  #end: Position;
  #written: Position;
  #synced: Position;
  /** The position that was durable at the last call of `onSynced`. */
  #reported: Position;
  #queue: Item[] = [];
  #buffered = 0;
  #waiters: Waiter[] = [];
  #roomWaiters: Pick<Waiter, "resolve" | "reject">[] = [];
  #writing = false;
  #flushing = false;
  #failure: NodeError | undefined;
  /** A permanent failure. */
  #broken: NodeError | undefined;
  /** Whether a flush failed. Its data may be gone from the page cache. */
  #suspect = false;
  #lingering: NodeJS.Timeout | undefined;
  /** Collects callers that wait for a flush. */
  readonly #gathering = new Gathering(() => {
    this.#requested = this.#waiters.at(-1)?.target ?? this.#requested;
    this.#pump();
  });
  /** The position up to which callers want the log to be durable and no longer wait for others. */
  #requested: Position;

  /** `end` is in the last segment, which exists and is durable up to there. */
  constructor(files: SegmentFiles, options: LogOptions, end: Position, lengths: Map<number, number>) {
    this.#files = files;
    this.#options = options;
    this.lengths = lengths;
    this.#end = this.#written = this.#synced = this.#requested = this.#reported = end;
  }

  /** The position of the next append, unless a new segment begins. */
  get end(): Position {
    return this.#end;
  }

  get synced(): Position {
    return this.#synced;
  }

  /** Number of bytes that wait to be written. */
  get buffered(): number {
    return this.#buffered;
  }

  get hasRoom(): boolean {
    return this.#failure === undefined && this.#broken === undefined && this.#buffered <= this.#options.bufferedBytes;
  }

  /**
   * Resolves when there is room for more.
   * @throws NodeError when the disk refuses writes
   */
  async room(): Promise<void> {
    while (!this.hasRoom) {
      if (this.#failure !== undefined || this.#broken !== undefined) await this.sync();
      else {
        await new Promise<void>((resolve, reject) => {
          this.#roomWaiters.push({ resolve, reject });
          this.#pump();
        });
      }
    }
  }

  /** Appends a block. The log retains `bytes`; `multihash` is a copy. */
  append({ cid, bytes, release }: Block): { readonly location: BlockLocation; readonly multihash: Uint8Array } {
    const head = sectionHead(cid.bytes, bytes.length);
    const start = this.#reserve(head.length + bytes.length);
    const offset = offsetAt(start) + head.length;
    const location: BlockLocation = {
      segment: segmentAt(start),
      offset,
      length: bytes.length,
      headLength: head.length,
      bytes,
      release,
    };
    this.#add({ position: start, parts: [head, bytes], bytes: head.length + bytes.length, location });
    return { location, multihash: head.subarray(head.length - cid.multihash.bytes.length) };
  }

  /** Appends a section that is not a block. */
  appendRecord(bytes: Uint8Array): void {
    this.#add({ position: this.#reserve(bytes.length), parts: [bytes], bytes: bytes.length, location: undefined });
  }

  /** Starts a new segment for the following appends. Its file exists after the next `sync`. */
  rotate(): void {
    this.#next();
    this.#add({ position: this.#reserve(0), parts: [], bytes: 0, location: undefined });
  }

  /** Resolves when everything that was appended before is durable. */
  sync(): Promise<void> {
    if (this.#broken !== undefined) return Promise.reject(this.#broken);
    this.#failure = undefined;
    const last = this.#queue.at(-1);
    const target = last === undefined ? this.#written : last.position + last.bytes;
    if (target <= this.#synced) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiters.push({ target, resolve, reject });
      this.#gathering.request();
    });
  }

  #next(): void {
    if (offsetAt(this.#end) === segmentHeader.length) return;
    this.#end = positionAt(segmentAt(this.#end) + 1, segmentHeader.length);
  }

  #reserve(bytes: number): Position {
    const offset = offsetAt(this.#end);
    if (offset + bytes > this.#options.segmentBytes) this.#next();
    const start = this.#end;
    this.#end += bytes;
    this.lengths.set(segmentAt(start), offsetAt(this.#end));
    return start;
  }

  #add(item: Item): void {
    this.#queue.push(item);
    this.#buffered += item.bytes;
    this.#pump();
  }

  /** Starts the write or flush that is due. With `now`, starts a write even for little data. */
  #pump(now = false): void {
    if (this.#failure !== undefined || this.#broken !== undefined) return;
    const next = this.#queue[0];
    // A segment is durable before the next one begins, so only the last one can be torn.
    const turning = next !== undefined && segmentAt(next.position) !== segmentAt(this.#written);
    const much = this.#buffered >= EAGER_BYTES || this.#queue.length >= EAGER_ITEMS;
    // Small items that arrive during a flush are written together after it.
    const isRequested = this.#requested > this.#synced;
    const eager = now || much || (isRequested && !this.#flushing) || this.#roomWaiters.length > 0;
    if (next !== undefined && !this.#writing && eager && !(turning && this.#written !== this.#synced)) {
      this.#writing = true;
      clearTimeout(this.#lingering);
      this.#lingering = undefined;
      const through = isRequested && !much && !turning && this.#written === this.#synced && !this.#suspect;
      this.#write(turning, through).then(
        () => this.#done("writing"),
        (error: Error) => this.#done("writing", error),
      );
    }
    const due = isRequested && (this.#waiters[0]?.target ?? Number.POSITIVE_INFINITY) <= this.#written;
    const unsynced = this.#written - this.#synced;
    if (!this.#flushing && unsynced > 0 && (due || (turning && eager) || unsynced >= MAX_UNSYNCED_BYTES)) {
      this.#flushing = true;
      this.#flush().then(
        () => this.#done("flushing"),
        (error: Error) => {
          this.#suspect = true;
          this.#done("flushing", error);
        },
      );
    }
    if (next !== undefined && !this.#writing) this.#linger();
  }

  #linger(): void {
    this.#lingering ??= setTimeout(() => {
      this.#lingering = undefined;
      this.#pump(true);
    }, LINGER_MS);
  }

  #done(what: "writing" | "flushing", error?: Error): void {
    if (what === "writing") this.#writing = false;
    else this.#flushing = false;
    if (error === undefined) {
      while (this.#waiters[0] !== undefined && this.#waiters[0].target <= this.#synced)
        this.#waiters.shift()?.resolve();
      if (this.#reported !== this.#synced) this.#options.onSynced();
      this.#reported = this.#synced;
      this.#pump();
      return;
    }
    this.#failure = failure("STORE_FULL", { path: this.#files.folder, reason: error.message }, error);
    const waiting = [...this.#waiters, ...this.#roomWaiters];
    this.#waiters = [];
    this.#roomWaiters = [];
    for (const { reject } of waiting) reject(this.#broken ?? this.#failure);
  }

  /**
   * Writes the first items of the queue. With `through`, they are durable immediately where the
   * system supports that; everything before them already is.
   */
  async #write(turning: boolean, through: boolean): Promise<void> {
    const first = this.#queue[0] as Item;
    const segment = segmentAt(first.position);
    let count = 0;
    let bytes = 0;
    const parts: Uint8Array[] = [];
    for (const item of this.#queue) {
      if (segmentAt(item.position) !== segment || bytes >= MAX_WRITE_BYTES || parts.length >= MAX_WRITE_PARTS) break;
      parts.push(...item.parts);
      bytes += item.bytes;
      count += 1;
    }
    if (turning) {
      await this.#files.begin(segment);
      this.#written = this.#synced = positionAt(segment, segmentHeader.length);
    }
    const offset = offsetAt(first.position);
    const durable = await this.#files.use(segment, async (file) => {
      const write = through ? file.writeThrough : undefined;
      try {
        await writeAll(write === undefined ? file : { write }, parts, offset);
      } catch (error) {
        await file.truncate(offset).catch(() => {});
        throw error;
      }
      return write !== undefined;
    });
    this.#written = first.position + bytes;
    if (durable) this.#synced = this.#written;
    for (const { location } of this.#queue.splice(0, count)) {
      if (location === undefined) continue;
      location.bytes = undefined;
      location.release?.();
    }
    this.#buffered -= bytes;
    const waiting = this.#roomWaiters;
    this.#roomWaiters = [];
    for (const { resolve } of waiting) resolve();
  }

  async #flush(): Promise<void> {
    const covers = this.#written;
    await this.#files.use(segmentAt(covers), async (file) => {
      if (this.#suspect) await this.#rewrite(file, offsetAt(this.#synced), offsetAt(covers));
      await file.sync();
    });
    this.#suspect = false;
    this.#synced = covers;
  }

  /**
   * Writes data again after a failed flush. The kernel has marked its pages as clean although they
   * never reached the disk; writing makes them dirty again.
   */
  async #rewrite(file: SegmentFile, from: number, end: number): Promise<void> {
    const reader = new SectionReader(file, from, end, { withData: true });
    let whole = true;
    for (let found = await reader.next(); found !== undefined && whole; found = await reader.next()) {
      whole = await isIntact(found);
    }
    if (!whole || reader.at !== end) {
      const reason = "the disk lost written data; close and open the store again";
      this.#broken = failure("STORE_BROKEN", { path: this.#files.folder, reason });
      throw this.#broken;
    }
    for (let at = from; at < end; at += EAGER_BYTES) {
      const chunk = new Uint8Array(Math.min(EAGER_BYTES, end - at));
      await file.read([chunk], at);
      await writeAll(file, [chunk], at);
    }
  }

  /** Resolves when no write is running. To make everything durable, call `sync` first. */
  async close(): Promise<void> {
    this.#broken = failure("STORE_CLOSED");
    clearTimeout(this.#lingering);
    this.#gathering.stop();
    await this.#files.close();
  }
}
