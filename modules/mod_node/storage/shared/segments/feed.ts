/** Brings what the log says of blocks into the index of this host, in order and behind the log. */
import { failure } from "../../../util/errors.ts";
import { keyOf } from "../../blockstore/segments/format.ts";
import type { Applier, BlockList, Commit, Entry, Position, Reached, Segment, SegmentId } from "../log.ts";
import { type IndexedBlock, isOfWhole } from "./index_file.ts";
import type { SegmentNumbers } from "./numbers.ts";
import { cidOfCondemned, PlaceChanges } from "./place_changes.ts";
import type { Places } from "./places.ts";

export interface FeedDeps {
  readonly places: Places;
  readonly numbers: SegmentNumbers;
  /** The blocks of a segment. @throws NodeError STORE_UNAVAILABLE */
  readonly load: (segment: Segment) => Promise<readonly IndexedBlock[]>;
  /** The CIDs of a list, as bytes. @throws NodeError STORE_UNAVAILABLE */
  readonly readList: (list: BlockList) => Promise<readonly Uint8Array[]>;
  /** Segments that were announced with `expect` are in the index. */
  readonly onIndexed: (numbers: readonly number[]) => void;
  /** What these collections condemned is removed, or rescued. */
  readonly onDecided: (epochs: readonly number[]) => void;
  /** These segments are no longer of the store. */
  readonly onDropped: (numbers: readonly number[]) => void;
}

/** Commits whose segments' indices are fetched ahead, and after how many blocks of these that ends. */
const MAX_AHEAD = 8;
const MAX_AHEAD_BLOCKS = 64 * 1024;
/** Condemned blocks that are decided together. */
const PAGE = 1024;
const RETRY_MS = 1000;

/** A segment that this host has written. */
interface Expected {
  readonly number: number;
  readonly blocks: readonly IndexedBlock[];
  hasCome: boolean;
  isIndexed: boolean;
  /** Its host knows that it is committed. */
  isAnswered: boolean;
}

interface Step {
  /** Undefined begins from nothing. */
  readonly commit: Commit | undefined;
  loaded: Map<Segment, Promise<readonly IndexedBlock[]>> | undefined;
}

export class PlaceFeed implements Applier {
  readonly #deps: FeedDeps;
  readonly #steps: Step[] = [];
  /** Segments of this host that are about to be committed. */
  readonly #expected = new Map<SegmentId, Expected>();
  #waiters: { readonly steps: number; readonly resolve: () => void; readonly reject: (error: unknown) => void }[] = [];
  /** Steps that came, and those that are in the index. */
  #came = 0;
  #done = 0;
  #running: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;
  /** Collections that condemned something and have not decided, as of the last commit that came. */
  readonly condemning: Set<number>;
  /** How often anything was removed, as of the last commit that came. */
  removals = 0;
  /** How often everything began anew: until that is in the index it lacks what is stored. */
  resets = 0;

  constructor(deps: FeedDeps) {
    this.#deps = deps;
    this.condemning = new Set(deps.places.epochs());
  }

  get position(): Position {
    return this.#deps.places.state.position;
  }

  get commit(): string | undefined {
    return this.#deps.places.state.commit;
  }

  /** This host is about to commit a segment: its blocks need not be fetched. */
  expect(id: SegmentId, number: number, blocks: readonly IndexedBlock[]): void {
    if (this.#expected.has(id)) return;
    this.#deps.numbers.assign(id, number);
    this.#expected.set(id, { number, blocks, hasCome: false, isIndexed: false, isAnswered: false });
  }

  /** Whether a segment that is expected has come: the answer to a commit may be lost. */
  hasCome(id: SegmentId): boolean {
    return this.#expected.get(id)?.hasCome === true;
  }

  /** An expected segment is committed, and whoever committed it knows. */
  answered(id: SegmentId): void {
    const expected = this.#expected.get(id);
    if (expected === undefined) return;
    expected.isAnswered = true;
    if (expected.isIndexed) this.#expected.delete(id);
  }

  /** It will not be committed. */
  forget(id: SegmentId): void {
    if (this.#expected.delete(id)) this.#deps.numbers.forget(id);
  }

  apply(commit: Commit): void {
    for (const entry of commit.entries) {
      for (const { id } of segmentsOf(entry)) {
        const expected = this.#expected.get(id);
        if (expected !== undefined) expected.hasCome = true;
      }
      if (entry.kind === "condemned") this.condemning.add(entry.epoch);
      if (entry.kind !== "removed") continue;
      this.condemning.delete(entry.epoch);
      this.removals += 1;
    }
    this.#add({ commit, loaded: undefined });
  }

  reset(): void {
    this.condemning.clear();
    this.removals += 1;
    this.resets += 1;
    this.#add({ commit: undefined, loaded: undefined });
  }

  get isSettled(): boolean {
    return this.#done === this.#came;
  }

  /** Resolves when all that was applied is in the index. @throws NodeError STORE_UNAVAILABLE, STORE_CLOSED */
  settled(): Promise<void> {
    if (this.isSettled) return Promise.resolve();
    if (this.#closed) return Promise.reject(failure("STORE_CLOSED"));
    return new Promise((resolve, reject) => {
      this.#waiters.push({ steps: this.#came, resolve, reject });
      this.#start();
    });
  }

  /** Whoever waits for the index is told: the log goes on for others, and may wait for this copy. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
    clearTimeout(this.#retry);
    this.#rejectWaiters(failure("STORE_CLOSED"));
  }

  #add(step: Step): void {
    this.#steps.push(step);
    this.#came += 1;
    this.#start();
  }

  #start(): void {
    if (this.#closed) return;
    this.#running ??= this.#run().then(
      () => {
        this.#running = undefined;
        // A step may have come since the last look.
        if (this.#steps.length > 0) this.#start();
      },
      (error: unknown) => {
        this.#running = undefined;
        this.#rejectWaiters(error);
        clearTimeout(this.#retry);
        this.#retry = setTimeout(() => this.#start(), RETRY_MS).unref();
      },
    );
  }

  #rejectWaiters(error: unknown): void {
    const waiting = this.#waiters;
    this.#waiters = [];
    for (const { reject } of waiting) reject(error);
  }

  async #run(): Promise<void> {
    while (this.#steps.length > 0 && !this.#closed) {
      const changes = new PlaceChanges(this.#deps.places);
      let taken = 0;
      let reached: Reached = this.#deps.places.state;
      // What was loaded for a step is held until all that are taken with it are in the index.
      const isEnough = () => changes.isDue || changes.isBegun;
      for (let step = this.#steps[0]; step !== undefined && !isEnough(); step = this.#steps[taken]) {
        // Alone: what comes before it is of no use any more.
        if (step.commit === undefined && taken > 0) break;
        this.#loadAhead(taken);
        for (const entry of step.commit?.entries ?? []) await this.#apply(changes, entry, step, reached);
        if (step.commit === undefined) await this.#deps.places.clear();
        else reached = { position: step.commit.position, commit: step.commit.id };
        taken += 1;
        if (step.commit === undefined) break;
      }
      if (this.#steps[0]?.commit !== undefined) await changes.write(reached);
      this.#drop(this.#steps.splice(0, taken));
      this.#done += taken;
      this.#waiters = this.#waiters.filter(({ steps, resolve }) => {
        if (steps > this.#done) return true;
        resolve();
        return false;
      });
    }
  }

  async #apply(changes: PlaceChanges, entry: Entry, step: Step, before: Reached): Promise<void> {
    const { position } = step.commit as Commit;
    if (entry.kind === "segment") await this.#addSegment(changes, entry.segment, { step, before });
    if (entry.kind === "replaced") {
      for (const segment of entry.by) await this.#addSegment(changes, segment, { step, before });
      for (const id of entry.segments) {
        const number = this.#deps.numbers.find(id);
        if (number !== undefined) changes.removeSegment(number);
      }
    }
    if (entry.kind === "condemned") {
      for (const cid of await this.#deps.readList(entry.list)) {
        changes.condemn(entry.epoch, Math.min(entry.upTo, position), cid);
        if (changes.isDue) await changes.write(before);
      }
    }
    if (entry.kind === "removed") await this.#remove(changes, entry, before);
  }

  async #addSegment(
    changes: PlaceChanges,
    segment: Segment,
    { step, before }: { readonly step: Step; readonly before: Reached },
  ): Promise<void> {
    const { id, bytes, blocks } = segment;
    const number = this.#deps.numbers.of(id);
    const found = await this.#load(step, segment);
    const { position } = step.commit as Commit;
    changes.addSegment(number, { id, bytes, blocks, position, isWhole: isOfWhole(segment, found) });
    for (const block of found) {
      changes.place(number, block);
      if (changes.isDue) await changes.write(before);
    }
  }

  async #remove(
    changes: PlaceChanges,
    { epoch, rescued }: Extract<Entry, { kind: "removed" }>,
    before: Reached,
  ): Promise<void> {
    const kept = new Set((await this.#deps.readList(rescued)).map(keyOf));
    // The index is asked for what was condemned.
    await changes.write(before);
    for (let after: Uint8Array | undefined; ; ) {
      const page = this.#deps.places.condemnedPage(epoch, after, PAGE);
      for (const key of page) changes.decide(epoch, key, kept.has(cidOfCondemned(key)));
      after = page.at(-1);
      if (after === undefined) return;
      await changes.write(before);
    }
  }

  #drop(steps: readonly Step[]): void {
    const gone: number[] = [];
    const indexed: number[] = [];
    const decided: number[] = [];
    // After a new beginning nothing is condemned any more.
    if (steps.some(({ commit }) => commit === undefined)) this.#deps.onDecided([]);
    for (const { commit } of steps) {
      for (const entry of commit?.entries ?? []) {
        for (const { id } of segmentsOf(entry)) {
          const expected = this.#expected.get(id);
          if (expected === undefined || expected.isIndexed) continue;
          expected.isIndexed = true;
          indexed.push(expected.number);
          if (expected.isAnswered) this.#expected.delete(id);
        }
        if (entry.kind === "removed") decided.push(entry.epoch);
        if (entry.kind !== "replaced") continue;
        for (const id of entry.segments) {
          const number = this.#deps.numbers.find(id);
          if (number !== undefined) gone.push(number);
          this.#deps.numbers.release(id);
        }
      }
    }
    if (indexed.length > 0) this.#deps.onIndexed(indexed);
    if (decided.length > 0) this.#deps.onDecided(decided);
    if (gone.length > 0) this.#deps.onDropped(gone);
  }

  #load(step: Step, segment: Segment): Promise<readonly IndexedBlock[]> {
    const expected = this.#expected.get(segment.id);
    if (expected !== undefined) return Promise.resolve(expected.blocks);
    step.loaded ??= new Map();
    const known = step.loaded.get(segment);
    if (known !== undefined) return known;
    const loading = this.#deps.load(segment);
    // Whoever fails is loaded anew.
    loading.catch(() => step.loaded?.delete(segment));
    step.loaded.set(segment, loading);
    return loading;
  }

  /** Begins to fetch what is large, for the step at `from` and a few after it. */
  #loadAhead(from: number): void {
    let blocks = 0;
    for (const step of this.#steps.slice(from, from + MAX_AHEAD)) {
      for (const segment of (step.commit?.entries ?? []).flatMap(segmentsOf)) {
        if (segment.index !== undefined) continue;
        if (blocks >= MAX_AHEAD_BLOCKS) return;
        blocks += segment.blocks;
        void this.#load(step, segment);
      }
    }
  }
}

/** The segments that an entry brings. */
const segmentsOf = (entry: Entry): readonly Segment[] =>
  entry.kind === "segment" ? [entry.segment] : entry.kind === "replaced" ? entry.by : [];
