/**
 * Brings what the log says of blocks into the index of this host, in order and behind the log. An index that is empty is made by
 * way of a backlog, in which blocks can be found meanwhile.
 */
import { failure } from "../../../util/errors.ts";
import { keyOf } from "../../blockstore/segments/format.ts";
import type { Applier, BlockList, Commit, Entry, Position, Reached, Segment, SegmentId } from "../log.ts";
import { Backlog } from "./backlog.ts";
import { ExpectedSegments, segmentsOf } from "./expected_segments.ts";
import { type IndexedBlock, isOfWhole } from "./index_file.ts";
import { IndexLoads } from "./index_loads.ts";
import { Milestone } from "./milestone.ts";
import { note } from "./noting.ts";
import type { SegmentNumbers } from "./numbers.ts";
import { cidOfCondemned, PlaceChanges } from "./place_changes.ts";
import type { Place, Places } from "./places.ts";

export interface FeedDeps {
  readonly places: Places;
  readonly numbers: SegmentNumbers;
  /** The blocks of a segment. @throws NodeError STORE_UNAVAILABLE */
  readonly load: (segment: Segment) => Promise<readonly IndexedBlock[]>;
  /** The CIDs of a list, as bytes. @throws NodeError STORE_UNAVAILABLE */
  readonly readList: (list: BlockList) => Promise<readonly Uint8Array[]>;
  /** `find` knows the blocks of segments that were announced with `expect`. */
  readonly onFound: (numbers: readonly number[]) => void;
  /** What these collections condemned is removed, or rescued, and `find` says so. */
  readonly onDecided: (epochs: readonly number[]) => void;
  /** These segments are no longer of the store. */
  readonly onDropped: (numbers: readonly number[]) => void;
}

/** Condemned blocks that are decided together. */
const PAGE = 1024;
const RETRY_MS = 1000;

/** A commit; undefined begins from nothing. */
interface Step {
  readonly commit: Commit | undefined;
}

/** An empty index on its way. */
interface Making {
  readonly backlog: Backlog;
  /** How many of the steps that are to come are in the backlog already. */
  noted: number;
  /** What was in the backlog when the index began to be filled from it: how many steps, and what they lead to. */
  steps: number;
  reached: Reached;
  /** Segments that they replace. */
  readonly replaced: Set<SegmentId>;
  state: "collecting" | "filling" | "filled";
  /** Steps that came since, which are in the backlog as well. */
  readonly later: Step[];
}

export class PlaceFeed implements Applier {
  readonly #deps: FeedDeps;
  readonly #steps: Step[] = [];
  /** Segments of this host that are about to be committed. */
  readonly #expected = new ExpectedSegments();
  readonly #loads: IndexLoads;
  /** Steps that came. */
  #came = 0;
  /** How many of them `find` knows, and how many are in the index. */
  readonly #known = new Milestone();
  readonly #indexed = new Milestone();
  #making: Making | undefined;
  /** The log has told everything that there was at some moment since it last began anew. */
  #isComplete = false;
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
    this.#loads = new IndexLoads(deps.load, this.#expected);
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
    this.#expected.add(id, number, blocks);
  }

  /** Whether a segment that is expected has come: the answer to a commit may be lost. */
  hasCome(id: SegmentId): boolean {
    return this.#expected.hasCome(id);
  }

  /** An expected segment is committed, and whoever committed it knows. */
  answered(id: SegmentId): void {
    this.#expected.answered(id);
  }

  /** It will not be committed. */
  forget(id: SegmentId): void {
    if (this.#expected.delete(id)) this.#deps.numbers.forget(id);
  }

  apply(commit: Commit): void {
    for (const entry of commit.entries) {
      this.#expected.came(entry);
      if (entry.kind === "condemned") this.condemning.add(entry.epoch);
      if (entry.kind !== "removed") continue;
      this.condemning.delete(entry.epoch);
      this.removals += 1;
    }
    this.#add({ commit });
  }

  reset(): void {
    this.condemning.clear();
    this.removals += 1;
    this.resets += 1;
    this.#isComplete = false;
    this.#add({ commit: undefined });
  }

  caughtUp(): void {
    this.#isComplete = true;
    this.#start();
  }

  /** All places of a multihash, condemned ones included; as of everything that was applied when it is settled. */
  find(multihash: Uint8Array): readonly Place[] {
    return (this.#making?.backlog ?? this.#deps.places).find(multihash);
  }

  get isSettled(): boolean {
    return this.#known.count === this.#came;
  }

  /** Resolves when `find` knows all that was applied. @throws NodeError STORE_UNAVAILABLE, STORE_CLOSED */
  settled(): Promise<void> {
    return this.#reach(this.#known);
  }

  get isIndexed(): boolean {
    return this.#indexed.count === this.#came;
  }

  /** Whether `find` knows more than the index has, or everything is beginning anew. */
  get isAhead(): boolean {
    return this.#making !== undefined || !this.#isComplete;
  }

  /** Resolves when all that was applied is in the index. @throws NodeError STORE_UNAVAILABLE, STORE_CLOSED */
  indexed(): Promise<void> {
    return this.#reach(this.#indexed);
  }

  /** Whoever waits for the index is told: the log goes on for others, and may wait for this copy. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
    clearTimeout(this.#retry);
    this.#fail(failure("STORE_CLOSED"));
  }

  #reach(milestone: Milestone): Promise<void> {
    if (milestone.count === this.#came) return Promise.resolve();
    if (this.#closed) return Promise.reject(failure("STORE_CLOSED"));
    this.#start();
    return milestone.reach(this.#came);
  }

  #fail(error: unknown): void {
    this.#known.fail(error);
    this.#indexed.fail(error);
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
        // Something may have come since the last look.
        if (this.#next() !== undefined) this.#start();
      },
      (error: unknown) => {
        this.#running = undefined;
        this.#fail(error);
        clearTimeout(this.#retry);
        this.#retry = setTimeout(() => this.#start(), RETRY_MS).unref();
      },
    );
  }

  async #run(): Promise<void> {
    for (let next = this.#next(); next !== undefined && !this.#closed; next = this.#next()) await next();
  }

  /** What is to be done, of which one thing is under way at a time. */
  #next(): (() => Promise<void>) | undefined {
    const making = this.#making;
    const [step] = this.#steps;
    if (making?.state === "filled" && making.later.length === 0) return () => this.#made();
    if (step !== undefined) {
      if (step.commit === undefined) return () => this.#beginAnew();
      if (making !== undefined) return () => this.#collect(making);
      if (this.position === 0) return () => this.#make();
      return () => this.#index(this.#steps);
    }
    if (making === undefined) return undefined;
    if (making.state !== "filled") return this.#isComplete ? () => this.#fill(making) : undefined;
    return () => this.#index(making.later);
  }

  /** What came before is of no use any more. */
  async #beginAnew(): Promise<void> {
    await this.#make();
    this.#steps.shift();
    this.#known.advance(1);
    this.#indexed.advance(this.#known.count - this.#indexed.count);
    this.#deps.onDecided([]);
  }

  async #make(): Promise<void> {
    this.#making = undefined;
    await this.#deps.places.clear();
    const backlog = new Backlog(this.#deps.places);
    const reached = this.#deps.places.state;
    this.#making = { backlog, noted: 0, steps: 0, reached, replaced: new Set(), state: "collecting", later: [] };
  }

  /** The first of these come into the backlog. After an error, what came there before it stays, and is not taken again. */
  async #collect(making: Making): Promise<void> {
    const { backlog } = making;
    const here = this.#steps.length;
    // What could not be written when it was noted.
    await backlog.flush();
    try {
      while (making.noted < here) {
        const commit = this.#steps[making.noted]?.commit;
        if (commit === undefined || (making.noted > 0 && backlog.room < blocksOf(commit))) break;
        this.#loads.ahead(this.#steps, making.noted);
        await note(commit, backlog, { ...this.#deps, blocksOf: (segment) => this.#loads.blocksOf(segment) });
        for (const segment of commit.entries.flatMap(segmentsOf)) this.#loads.drop(segment);
        making.noted += 1;
      }
    } finally {
      await backlog.flush();
      this.#collected(making);
    }
  }

  /** Steps that are in the backlog are done. */
  #collected(making: Making): void {
    const steps = this.#steps.splice(0, making.noted);
    making.noted = 0;
    if (making.state !== "collecting") making.later.push(...steps);
    else {
      making.steps += steps.length;
      const last = steps.at(-1)?.commit;
      if (last !== undefined) making.reached = { position: last.position, commit: last.id };
      for (const id of replacedBy(entriesOf(steps))) making.replaced.add(id);
    }
    this.#found(steps);
  }

  /** A part of the backlog comes into the index. */
  async #fill(making: Making): Promise<void> {
    making.state = "filling";
    if (!(await making.backlog.fill(making.reached, making.replaced))) return;
    making.state = "filled";
    this.#inIndex(making.steps, [...making.replaced]);
  }

  async #made(): Promise<void> {
    this.#making = undefined;
    await this.#deps.places.clearChunks();
  }

  /** The first of these come into the index. */
  async #index(steps: Step[]): Promise<void> {
    const changes = new PlaceChanges(this.#deps.places);
    let taken = 0;
    let reached: Reached = this.#deps.places.state;
    // What was loaded for a step is held until all that are taken with it are in the index.
    const isEnough = () => changes.isDue || changes.isBegun;
    for (let step = steps[0]; step?.commit !== undefined && !isEnough(); step = steps[taken]) {
      this.#loads.ahead(steps, taken);
      for (const entry of step.commit.entries) await this.#apply(changes, entry, step.commit, reached);
      reached = { position: step.commit.position, commit: step.commit.id };
      taken += 1;
    }
    await changes.write(reached);
    const done = steps.splice(0, taken);
    if (this.#making === undefined) this.#found(done);
    this.#inIndex(taken, replacedBy(entriesOf(done)));
  }

  async #apply(changes: PlaceChanges, entry: Entry, commit: Commit, before: Reached): Promise<void> {
    const { position } = commit;
    if (entry.kind === "segment") await this.#addSegment(changes, entry.segment, { position, before });
    if (entry.kind === "replaced") {
      for (const segment of entry.by) await this.#addSegment(changes, segment, { position, before });
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
    { position, before }: { readonly position: Position; readonly before: Reached },
  ): Promise<void> {
    const { id, bytes, blocks } = segment;
    const number = this.#deps.numbers.of(id);
    const found = await this.#loads.blocksOf(segment);
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

  /** `find` knows these. */
  #found(steps: readonly Step[]): void {
    const entries = entriesOf(steps);
    const found = this.#expected.found(entries.flatMap(segmentsOf).map(({ id }) => id));
    const decided = entries.flatMap((entry) => (entry.kind === "removed" ? [entry.epoch] : []));
    if (found.length > 0) this.#deps.onFound(found);
    if (decided.length > 0) this.#deps.onDecided(decided);
    this.#known.advance(steps.length);
  }

  /** So many steps more are in the index, which replace these segments. */
  #inIndex(steps: number, replaced: readonly SegmentId[]): void {
    const gone = replaced.flatMap((id) => this.#deps.numbers.find(id) ?? []);
    for (const id of replaced) this.#deps.numbers.release(id);
    if (gone.length > 0) this.#deps.onDropped(gone);
    this.#indexed.advance(steps);
  }
}

const entriesOf = (steps: readonly Step[]): Entry[] => steps.flatMap(({ commit }) => commit?.entries ?? []);

/** Of the segments that it brings. */
const blocksOf = ({ entries }: Commit): number =>
  entries.flatMap(segmentsOf).reduce((sum, { blocks }) => sum + blocks, 0);

const replacedBy = (entries: readonly Entry[]): SegmentId[] =>
  entries.flatMap((entry) => (entry.kind === "replaced" ? entry.segments : []));
