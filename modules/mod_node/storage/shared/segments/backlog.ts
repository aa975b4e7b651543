/**
 * What the log says of blocks until it is in the index, for a host whose index is empty: each block can be found as soon as all has
 * been fetched, and that is sorted before it comes into the index.
 */
import type { Position, Reached, SegmentId } from "../log.ts";
import { type IndexedBlock, sectionBytes } from "./index_file.ts";
import { type Mention, MentionBatch, type MentionRun, mentionsOf, merged } from "./mention_runs.ts";
import { condemnedKey, partsOfCid } from "./place_changes.ts";
import type { Place, Places, PlaceWrite, SegmentRow } from "./places.ts";

/** An entry of the log that says something of blocks. */
type Source =
  | { readonly kind: "segment"; readonly number: number; readonly position: Position }
  | { readonly kind: "condemned"; readonly epoch: number; readonly upTo: Position }
  /** The blocks that it mentions are rescued. */
  | { readonly kind: "removed"; readonly epoch: number };

/** Multihashes that are written to the index at a time. */
const WRITTEN = 4096;

export class Backlog {
  readonly #places: Places;
  readonly #batch = new MentionBatch();
  readonly #runs: MentionRun[] = [];
  #chunks = 0;
  readonly #sources: Source[] = [];
  /** By epoch, the entry that decided it. */
  readonly #decisions = new Map<number, number>();
  /** Segments that are not among those of the index yet. */
  #rows = new Map<number, SegmentRow>();
  /** What goes into the index: so many entries, in so many runs. */
  #filled: { readonly sources: number; readonly runs: readonly MentionRun[] } | undefined;
  #filling: Filling | undefined;

  /** `places` is empty. */
  constructor(places: Places) {
    this.#places = places;
  }

  /** How many blocks can be added until a run is made of them. */
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

  /** These are condemned in segments of up to that commit. */
  async addCondemned(epoch: number, upTo: Position, cids: readonly Uint8Array[]): Promise<void> {
    await this.#addList(this.#sources.push({ kind: "condemned", epoch, upTo }) - 1, cids);
  }

  /** What is condemned is gone, except these. */
  async addRemoved(epoch: number, rescued: readonly Uint8Array[]): Promise<void> {
    const source = this.#sources.push({ kind: "removed", epoch }) - 1;
    this.#decisions.set(epoch, source);
    await this.#addList(source, rescued);
  }

  /** What was added is found from now on. */
  async flush(): Promise<void> {
    const rows = this.#rows;
    if (this.#batch.isEmpty && rows.size === 0) return;
    const made = this.#batch.chunks();
    const chunks = made.map(({ bytes }, at) => [this.#chunks + at, bytes] as const);
    await this.#places.write({ state: this.#places.state, places: [], rows, condemned: [], chunks });
    if (made.length > 0) this.#runs.push({ firstChunk: this.#chunks, keys: Uint32Array.from(made, ({ key }) => key) });
    this.#chunks += made.length;
    this.#batch.clear();
    this.#rows = new Map();
  }

  /** All places of a multihash, condemned ones included. */
  find(multihash: Uint8Array): readonly Place[] {
    const mentions = mentionsOf(multihash, this.#runs, this.#places.chunks);
    if (mentions.length > 1) mentions.sort((one, other) => one.source - other.source);
    return this.#placesOf(mentions, this.#sources.length);
  }

  /**
   * Brings what was flushed before the first call into the index, a part with each call; true when all of it is there, up to `reached`.
   * Segments in `replaced` are no longer of the store. After an error it begins anew.
   */
  async fill(reached: Reached, replaced: ReadonlySet<SegmentId>): Promise<boolean> {
    const { sources, runs } = (this.#filled ??= { sources: this.#sources.length, runs: [...this.#runs] });
    const filling = (this.#filling ??= new Filling(merged(runs, this.#places.chunks)));
    try {
      const write = filling.next((mentions) => this.#placesOf(mentions, sources));
      const { places, condemned } = filling;
      if (write !== undefined) {
        await this.#places.write({ ...write, state: { position: 0, places, condemned }, rows: new Map() });
        return false;
      }
      const rows = new Map<number, SegmentRow | undefined>();
      for (const source of this.#sources.slice(0, sources)) {
        const row = source.kind === "segment" && this.#places.rows.get(source.number);
        if (!row) continue;
        const { number } = source;
        rows.set(number, replaced.has(row.id) ? undefined : { ...row, live: filling.live.get(number) ?? 0 });
      }
      await this.#places.write({ state: { ...reached, places, condemned }, places: [], rows, condemned: [] });
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

  /** What becomes of a multihash by what the first `sources` entries say of it. */
  #placesOf(mentions: readonly Mention[], sources: number): readonly Place[] {
    let places: (Place & { readonly position: Position })[] = [];
    // Those are gone whose collection was decided and which it did not rescue.
    const decideBefore = (source: number) => {
      if (places.some(({ epoch }) => epoch !== 0))
        places = places.filter(({ epoch }) => !(Number(this.#decisions.get(epoch)) < source));
    };
    for (const { form, offset, length, source } of mentions) {
      decideBefore(source);
      const place = places.find((each) => each.form === form);
      const others = places.filter((each) => each !== place);
      const said = this.#sources[source] as Source;
      if (said.kind === "segment") {
        const { number: segment, position } = said;
        places = [...others, { form, segment, offset, length, epoch: 0, position }];
      } else if (place === undefined) continue;
      else if (said.kind === "removed")
        places = [...others, place.epoch === said.epoch ? { ...place, epoch: 0 } : place];
      else if (place.epoch === 0 && place.position <= said.upTo) places = [...others, { ...place, epoch: said.epoch }];
    }
    decideBefore(sources);
    return places;
  }
}

/** On the way into the index. */
class Filling {
  readonly #mentions: Iterator<readonly Mention[]>;
  /** So far. */
  places = 0;
  condemned = 0;
  /** By segment. */
  readonly live = new Map<number, number>();

  constructor(mentions: Iterator<readonly Mention[]>) {
    this.#mentions = mentions;
  }

  /** Undefined at the end. */
  next(
    placesOf: (mentions: readonly Mention[]) => readonly Place[],
  ): Pick<PlaceWrite, "places" | "condemned"> | undefined {
    const found: (readonly [Uint8Array, readonly Place[]])[] = [];
    const condemned: PlaceWrite["condemned"][number][] = [];
    while (found.length < WRITTEN) {
      const { value: mentions, done } = this.#mentions.next();
      if (done) break;
      const { multihash } = mentions[0] as Mention;
      const places = placesOf(mentions);
      if (places.length === 0) continue;
      found.push([multihash, places]);
      for (const { segment, form, length, epoch } of places) {
        this.places += 1;
        this.live.set(segment, (this.live.get(segment) ?? 0) + sectionBytes({ multihash, form, length }));
        if (epoch === 0) continue;
        this.condemned += 1;
        condemned.push({ epoch, key: condemnedKey(form, multihash), is: true });
      }
    }
    return found.length === 0 ? undefined : { places: found, condemned };
  }
}
