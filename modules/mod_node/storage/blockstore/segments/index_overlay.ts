/**
 * The content of the store according to the whole log: the index, and on top of it the entries that
 * are not in the index yet.
 */

import { TimeSlices } from "../../../util/async/steps.ts";
import { type BlockLocation, keyOf, offsetAt, type Position, segmentAt } from "./format.ts";
import type { SegmentIndex, State, Stored, Usage } from "./segment_index.ts";
import { unused } from "./segment_index.ts";

interface PendingEntry {
  readonly multihash: Uint8Array;
  readonly stored: Stored;
  /** The position in the log at which this entry became valid. */
  readonly end: Position;
  /**
   * The entry before this one, while it is not in the index: the index may be updated to a position
   * between the two.
   */
  previous: PendingEntry | undefined;
}

interface PendingRecord {
  readonly bytes: number;
  readonly tombstones: boolean;
  readonly end: Position;
}

/**
 * Number of entries, or bytes of the log, from which they are written to the index. Each entry may
 * be on a page of its own, which LMDB copies, and LMDB never frees that memory.
 */
const DUE_ENTRIES = 4096;
const DUE_BYTES = 64 * 1024 * 1024;
const MAX_ENTRIES = 2 * DUE_ENTRIES;

const nothing: Stored = { forms: [], location: undefined };
const sizeOf = (location: BlockLocation): number => location.headLength + location.length;
const countOf = ({ forms, location }: Stored): number => (location === undefined ? 0 : forms.length);

/** Returns the last entry that is valid at a position. */
function before(latest: PendingEntry, position: Position): PendingEntry | undefined {
  let entry: PendingEntry | undefined = latest;
  while (entry !== undefined && entry.end > position) entry = entry.previous;
  return entry;
}

export class IndexOverlay {
  readonly index: SegmentIndex;
  #state: State;
  readonly #usage: Map<number, Usage>;
  /** Entries by `keyOf` of the multihash. */
  readonly #pending = new Map<string, PendingEntry>();
  #records: PendingRecord[] = [];
  /** The end of the log in each segment that has grown since the last `apply`. */
  readonly #logEnds = new Map<number, Position>();
  #blocks: number;
  /** The last write to the index; writes run one after the other. */
  #writing: Promise<void> = Promise.resolve();
  #queued = 0;

  readonly #lastBytes: (position: Position) => Promise<Uint8Array>;

  /** `lastBytes` reads the end of the log before a position, for `State.last`. */
  constructor(
    index: SegmentIndex,
    { state, usage }: { readonly state: State; readonly usage: Map<number, Usage> },
    lastBytes: (position: Position) => Promise<Uint8Array>,
  ) {
    this.index = index;
    this.#lastBytes = lastBytes;
    this.#state = state;
    this.#usage = usage;
    this.#blocks = state.blocks;
  }

  /** Number of stored forms. */
  get blocks(): number {
    return this.#blocks;
  }

  /** Usage of segments as of the last `apply`. */
  get usage(): ReadonlyMap<number, Usage> {
    return this.#usage;
  }

  /** Whether more entries wait for the index than should be in memory. */
  get isCrowded(): boolean {
    return this.#pending.size > MAX_ENTRIES;
  }

  /** Whether `apply` is worthwhile and not running. */
  isDue(position: Position): boolean {
    if (this.#queued > 0) return false;
    return this.#pending.size >= DUE_ENTRIES || position - this.#state.position >= DUE_BYTES;
  }

  /** Whether enough entries for one write to the index wait for a flush. */
  get isFull(): boolean {
    return this.#pending.size >= DUE_ENTRIES && this.#queued === 0;
  }

  /** Whether entries or records wait for the index. */
  get hasPending(): boolean {
    return this.#pending.size > 0 || this.#records.length > 0;
  }

  find(multihash: Uint8Array): Stored | undefined {
    // Usually no entries wait for the index, and every read looks up its block here.
    const pending = this.#pending.size === 0 ? undefined : this.#pending.get(keyOf(multihash));
    if (pending === undefined) return this.index.find(multihash);
    return pending.stored.forms.length === 0 ? undefined : pending.stored;
  }

  /**
   * Sets the state of a multihash; undefined deletes it. `old` is the result of `find`. `multihash`
   * must not be changed afterwards.
   */
  set(multihash: Uint8Array, old: Stored | undefined, stored: Stored | undefined, end: Position): void {
    const key = keyOf(multihash);
    this.#blocks += countOf(stored ?? nothing) - countOf(old ?? nothing);
    const previous = this.#pending.get(key);
    this.#pending.set(key, { multihash, stored: stored ?? nothing, end, previous });
    this.setLogEnd(end);
  }

  /** Counts a record that was appended to the log. */
  addRecord(bytes: number, tombstones: boolean, end: Position): void {
    this.#records.push({ bytes, tombstones, end });
    this.setLogEnd(end);
  }

  /** Records that the log has grown to this position. */
  setLogEnd(end: Position): void {
    this.#logEnds.set(segmentAt(end), end);
  }

  /** Returns the entries that are not in the index yet. */
  pendingEntries(): { multihash: Uint8Array; stored: Stored }[] {
    return [...this.#pending.values()];
  }

  /** Writes the content of the log before `position`, which must be durable, to the index. */
  apply(position: Position): Promise<void> {
    return this.#serial(() => this.#apply(position));
  }

  /**
   * Marks a segment whose file is about to be removed. With undefined, removes the mark of a file
   * that has been removed. Durable when the promise resolves.
   */
  mark(segment: number, dropping: true | undefined): Promise<void> {
    return this.#serial(async () => {
      const used = dropping && { ...(this.#usage.get(segment) ?? unused), dropping };
      await this.index.write({ state: this.#state, usage: new Map([[segment, used]]) });
      if (used === undefined) this.#usage.delete(segment);
      else this.#usage.set(segment, used);
    });
  }

  /** Ends a rebuild: entries without a location are not stored. */
  async finish(): Promise<void> {
    for (let after: Uint8Array | undefined; ; ) {
      const page = this.index.page(after, 1000);
      const lost = page.filter(({ stored }) => stored.location === undefined);
      const blocks = lost.map(({ multihash }) => ({ multihash, stored: nothing }));
      if (lost.length > 0) await this.index.write({ state: this.#state, blocks });
      after = page.at(-1)?.multihash;
      if (after === undefined) break;
    }
    const state = { ...this.#state, rebuilding: false };
    await this.index.write({ state });
    this.#state = state;
  }

  /** Closes the index when no write is running. */
  async close(): Promise<void> {
    await this.#writing.catch(() => {});
    await this.index.close();
  }

  #serial(write: () => Promise<void>): Promise<void> {
    this.#queued += 1;
    this.#writing = this.#writing.catch(() => {}).then(write);
    return this.#writing.finally(() => {
      this.#queued -= 1;
    });
  }

  async #apply(position: Position): Promise<void> {
    if (position <= this.#state.position) return;
    const usage = new Map<number, Usage>();
    const change = (segment: number, how: (used: Usage) => Partial<Usage>): void => {
      const used = usage.get(segment) ?? this.#usage.get(segment) ?? unused;
      usage.set(segment, { ...used, ...how(used) });
    };
    for (const [segment, end] of this.#logEnds) {
      if (segment <= segmentAt(position)) change(segment, () => ({ length: offsetAt(Math.min(end, position)) }));
    }
    const blocks: PendingEntry[] = [];
    let count = this.#state.blocks;
    const slices = new TimeSlices();
    // Blocks that are put in the meantime have positions after `position`.
    for (const latest of this.#pending.values()) {
      const turn = slices.due();
      if (turn !== undefined) await turn;
      const entry = before(latest, position);
      if (entry === undefined) continue;
      const { location } = entry.stored;
      const old = this.index.find(entry.multihash) ?? nothing;
      if (old.location)
        change(old.location.segment, ({ live }) => ({ live: live - sizeOf(old.location as BlockLocation) }));
      if (location) change(location.segment, ({ live }) => ({ live: live + sizeOf(location) }));
      count += countOf(entry.stored) - countOf(old);
      blocks.push(entry);
    }
    for (const { bytes, tombstones, end } of this.#records) {
      if (end > position) break;
      change(segmentAt(end), (used) =>
        tombstones ? { tombstones: used.tombstones + bytes } : { records: used.records + bytes },
      );
    }
    const state = { ...this.#state, position, blocks: count, last: await this.#lastBytes(position) };
    await this.index.write({ state, blocks, usage });

    this.#state = state;
    for (const [segment, used] of usage) this.#usage.set(segment, used);
    for (const entry of blocks) {
      const key = keyOf(entry.multihash);
      const latest = this.#pending.get(key);
      if (latest === entry) this.#pending.delete(key);
      for (let later = latest; later !== undefined; later = later.previous) {
        if (later.previous === entry) later.previous = undefined;
      }
    }
    this.#records = this.#records.filter(({ end }) => end > position);
    for (const [segment, end] of this.#logEnds) {
      if (end <= position) this.#logEnds.delete(segment);
    }
  }
}
