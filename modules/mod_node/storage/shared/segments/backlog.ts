/**
 * Log entries about blocks that are not in the index yet, for a host whose index is empty. Each
 * block can be found as soon as its entries have been fetched. The entries are sorted before they
 * are written to the index.
 */
import type { Position, Reached, SegmentId } from "../log.ts";
import type { BlockIndex, IndexedLocation, IndexWrite, SegmentRow } from "./block_index.ts";
import { condemnedKey, partsOfCid } from "./index_changes.ts";
import { type IndexedBlock, sectionBytes } from "./index_file.ts";
import { type Mention, MentionBatch, type MentionRun, mentionsOf, merged } from "./mention_runs.ts";

/** A log entry about blocks. */
type Source =
  | { readonly kind: "segment"; readonly number: number; readonly position: Position }
  | { readonly kind: "condemned"; readonly epoch: number; readonly upTo: Position }
  /** The blocks that it mentions are rescued. */
  | { readonly kind: "removed"; readonly epoch: number };

/** Number of multihashes per write to the index. */
const WRITTEN = 4096;

export class Backlog {
  readonly #index: BlockIndex;
  readonly #batch = new MentionBatch();
  readonly #runs: MentionRun[] = [];
  #chunks = 0;
  readonly #sources: Source[] = [];
  /** Number of the deciding entry by epoch. */
  readonly #decisions = new Map<number, number>();
  /** Segments that are not in the segment table of the index yet. */
  #rows = new Map<number, SegmentRow>();
  /** The number of entries, and the runs, that are being written to the index. */
  #filled: { readonly sources: number; readonly runs: readonly MentionRun[] } | undefined;
  #filling: Filling | undefined;

  /** The index must be empty. */
  constructor(locations: BlockIndex) {
    this.#index = locations;
  }

  /** Number of blocks that can be added before they are written as a run. */
  get room(): number {
    return this.#batch.room;
  }

  async addSegment(number: number, row: Omit<SegmentRow, "live">, blocks: Iterable<IndexedBlock>): Promise<void> {
    const source = this.#sources.push({ kind: "segment", number, position: row.position }) - 1;
    this.#rows.set(number, { ...row, live: 0 });
    for (const { multihash, form, offset, length } of blocks) {
      if (this.#batch.room === 0) await this.flush();
      this.#batch.add({ multihash, form, offset, length, source });
    }
  }

  /** Adds a list of blocks that are condemned in segments up to that commit. */
  async addCondemned(epoch: number, upTo: Position, cids: readonly Uint8Array[]): Promise<void> {
    await this.#addList(this.#sources.push({ kind: "condemned", epoch, upTo }) - 1, cids);
  }

  /** Adds a decision: the condemned blocks are gone, except for these. */
  async addRemoved(epoch: number, rescued: readonly Uint8Array[]): Promise<void> {
    const source = this.#sources.push({ kind: "removed", epoch }) - 1;
    this.#decisions.set(epoch, source);
    await this.#addList(source, rescued);
  }

  /** Writes the added blocks as a run, so that `find` returns them. */
  async flush(): Promise<void> {
    const rows = this.#rows;
    if (this.#batch.isEmpty && rows.size === 0) return;
    const made = this.#batch.chunks();
    const chunks = made.map(({ bytes }, at) => [this.#chunks + at, bytes] as const);
    await this.#index.write({ state: this.#index.state, locations: [], rows, condemned: [], chunks });
    if (made.length > 0) this.#runs.push({ firstChunk: this.#chunks, keys: Uint32Array.from(made, ({ key }) => key) });
    this.#chunks += made.length;
    this.#batch.clear();
    this.#rows = new Map();
  }

  /** Returns all locations of a multihash, including condemned ones. */
  find(multihash: Uint8Array): readonly IndexedLocation[] {
    const mentions = mentionsOf(multihash, this.#runs, this.#index.chunks);
    if (mentions.length > 1) mentions.sort((one, other) => one.source - other.source);
    return this.#locationsOf(mentions, this.#sources.length);
  }

  /**
   * Writes everything that was flushed before the first call to the index, one part per call.
   * Returns true when all of it is written, up to `reached`. Segments in `replaced` no longer
   * belong to the store. After an error, it starts again from the beginning.
   */
  async fill(reached: Reached, replaced: ReadonlySet<SegmentId>): Promise<boolean> {
    const { sources, runs } = (this.#filled ??= { sources: this.#sources.length, runs: [...this.#runs] });
    const filling = (this.#filling ??= new Filling(merged(runs, this.#index.chunks)));
    try {
      const write = filling.next((mentions) => this.#locationsOf(mentions, sources));
      const { locations, condemned } = filling;
      if (write !== undefined) {
        await this.#index.write({ ...write, state: { position: 0, locations, condemned }, rows: new Map() });
        return false;
      }
      const rows = new Map<number, SegmentRow | undefined>();
      for (const source of this.#sources.slice(0, sources)) {
        const row = source.kind === "segment" && this.#index.rows.get(source.number);
        if (!row) continue;
        const { number } = source;
        rows.set(number, replaced.has(row.id) ? undefined : { ...row, live: filling.live.get(number) ?? 0 });
      }
      await this.#index.write({ state: { ...reached, locations, condemned }, locations: [], rows, condemned: [] });
      return true;
    } catch (error) {
      this.#filling = undefined;
      throw error;
    }
  }

  async #addList(source: number, cids: readonly Uint8Array[]): Promise<void> {
    for (const cid of cids) {
      if (this.#batch.room === 0) await this.flush();
      this.#batch.add({ ...partsOfCid(cid), offset: 0, length: 0, source });
    }
  }

  /** Computes the locations of a multihash from the first `sources` entries. */
  #locationsOf(mentions: readonly Mention[], sources: number): readonly IndexedLocation[] {
    let locations: (IndexedLocation & { readonly position: Position })[] = [];
    // Removes blocks whose collection was decided without rescuing them.
    const decideBefore = (source: number) => {
      if (locations.some(({ epoch }) => epoch !== 0))
        locations = locations.filter(({ epoch }) => !(Number(this.#decisions.get(epoch)) < source));
    };
    for (const { form, offset, length, source } of mentions) {
      decideBefore(source);
      const location = locations.find((each) => each.form === form);
      const others = locations.filter((each) => each !== location);
      const entry = this.#sources[source] as Source;
      if (entry.kind === "segment") {
        const { number: segment, position } = entry;
        locations = [...others, { form, segment, offset, length, epoch: 0, position }];
      } else if (location === undefined) continue;
      else if (entry.kind === "removed")
        locations = [...others, location.epoch === entry.epoch ? { ...location, epoch: 0 } : location];
      else if (location.epoch === 0 && location.position <= entry.upTo)
        locations = [...others, { ...location, epoch: entry.epoch }];
    }
    decideBefore(sources);
    return locations;
  }
}

/** A pass that writes runs to the index. */
class Filling {
  readonly #mentions: Iterator<readonly Mention[]>;
  /** Counts of this pass so far. */
  locations = 0;
  condemned = 0;
  /** Live bytes by segment. */
  readonly live = new Map<number, number>();

  constructor(mentions: Iterator<readonly Mention[]>) {
    this.#mentions = mentions;
  }

  /** Returns the next part to write; undefined at the end. */
  next(
    locationsOf: (mentions: readonly Mention[]) => readonly IndexedLocation[],
  ): Pick<IndexWrite, "locations" | "condemned"> | undefined {
    const found: (readonly [Uint8Array, readonly IndexedLocation[]])[] = [];
    const condemned: IndexWrite["condemned"][number][] = [];
    while (found.length < WRITTEN) {
      const { value: mentions, done } = this.#mentions.next();
      if (done) break;
      const { multihash } = mentions[0] as Mention;
      const locations = locationsOf(mentions);
      if (locations.length === 0) continue;
      found.push([multihash, locations]);
      for (const { segment, form, length, epoch } of locations) {
        this.locations += 1;
        this.live.set(segment, (this.live.get(segment) ?? 0) + sectionBytes({ multihash, form, length }));
        if (epoch === 0) continue;
        this.condemned += 1;
        condemned.push({ epoch, key: condemnedKey(form, multihash), is: true });
      }
    }
    return found.length === 0 ? undefined : { locations: found, condemned };
  }
}
