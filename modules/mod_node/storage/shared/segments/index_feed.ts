/**
 * Applies log entries about blocks to the index of this host, in order and in the background. An
 * empty index is built by way of a backlog, in which blocks can be found in the meantime.
 */
import { failure } from "../../../util/errors.ts";
import { keyOf } from "../../blockstore/segments/format.ts";
import type { Applier, BlockList, Commit, Entry, Position, Reached, Segment, SegmentId } from "../log.ts";
import { addToBacklog } from "./add_to_backlog.ts";
import { Backlog } from "./backlog.ts";
import type { BlockIndex, IndexedLocation } from "./block_index.ts";
import { ExpectedSegments, segmentsOf } from "./expected_segments.ts";
import { cidOfCondemned, IndexChanges } from "./index_changes.ts";
import { type IndexedBlock, isOfWhole } from "./index_file.ts";
import { IndexLoads } from "./index_loads.ts";
import { Milestone } from "./milestone.ts";
import type { SegmentNumbers } from "./numbers.ts";

export interface FeedDeps {
  readonly index: BlockIndex;
  readonly numbers: SegmentNumbers;
  /**
   * Loads the blocks of a segment.
   * @throws NodeError STORE_UNAVAILABLE
   */
  readonly load: (segment: Segment) => Promise<readonly IndexedBlock[]>;
  /**
   * Loads the CIDs of a list as bytes.
   * @throws NodeError STORE_UNAVAILABLE
   */
  readonly readList: (list: BlockList) => Promise<readonly Uint8Array[]>;
  /** Called when `find` knows the blocks of segments that were announced with `expect`. */
  readonly onFound: (numbers: readonly number[]) => void;
  /** Called when the collections with these epochs are decided and `find` returns the result. */
  readonly onDecided: (epochs: readonly number[]) => void;
  /** Called when these segments no longer belong to the store. */
  readonly onDropped: (numbers: readonly number[]) => void;
}

/** Number of condemned blocks that are decided together. */
const PAGE = 1024;
const RETRY_MS = 1000;

/** A commit, or undefined for a reset to the empty state. */
interface Step {
  readonly commit: Commit | undefined;
}

/** The state of building an empty index. */
interface Making {
  readonly backlog: Backlog;
  /** Number of pending steps that are in the backlog already. */
  noted: number;
  /** Number of steps in the backlog when filling the index began, and the position they lead to. */
  steps: number;
  reached: Reached;
  /** Segments that these steps replace. */
  readonly replaced: Set<SegmentId>;
  state: "collecting" | "filling" | "filled";
  /** Steps that arrived since then and are in the backlog as well. */
  readonly later: Step[];
}

export class IndexFeed implements Applier {
  readonly #deps: FeedDeps;
  readonly #steps: Step[] = [];
  /** Segments that this host is about to commit. */
  readonly #expected = new ExpectedSegments();
  readonly #loads: IndexLoads;
  /** Number of steps that have arrived. */
  #arrived = 0;
  /** Number of steps that `find` knows, and number of steps in the index. */
  readonly #known = new Milestone();
  readonly #indexed = new Milestone();
  #making: Making | undefined;
  /** Whether the log was read to its end since the last reset. */
  #isComplete = false;
  #running: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;
  /**
   * Collections that have condemned blocks and are undecided, as of the last commit that arrived.
   */
  readonly condemning: Set<number>;
  /** Number of removals, as of the last commit that arrived. */
  removals = 0;
  /** Number of resets. Until a reset is in the index, the index lacks stored blocks. */
  resets = 0;

  constructor(deps: FeedDeps) {
    this.#deps = deps;
    this.#loads = new IndexLoads(deps.load, this.#expected);
    this.condemning = new Set(deps.index.epochs());
  }

  get position(): Position {
    return this.#deps.index.state.position;
  }

  get commit(): string | undefined {
    return this.#deps.index.state.commit;
  }

  /**
   * Announces a segment that this host is about to commit, so that its blocks need not be fetched.
   */
  expect(id: SegmentId, number: number, blocks: readonly IndexedBlock[]): void {
    if (this.#expected.has(id)) return;
    this.#deps.numbers.assign(id, number);
    this.#expected.add(id, number, blocks);
  }

  /**
   * Whether an expected segment has arrived in the log. The response to its commit may have been
   * lost.
   */
  hasArrived(id: SegmentId): boolean {
    return this.#expected.hasArrived(id);
  }

  /** Records that an expected segment is committed and that its writer knows this. */
  confirmed(id: SegmentId): void {
    this.#expected.confirmed(id);
  }

  /** Withdraws an announcement: the segment will not be committed. */
  forget(id: SegmentId): void {
    if (this.#expected.delete(id)) this.#deps.numbers.forget(id);
  }

  apply(commit: Commit): void {
    for (const entry of commit.entries) {
      this.#expected.arrived(entry);
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

  /**
   * Returns all locations of a multihash, including condemned ones. The result includes everything
   * that was applied when `isSettled` is true.
   */
  find(multihash: Uint8Array): readonly IndexedLocation[] {
    return (this.#making?.backlog ?? this.#deps.index).find(multihash);
  }

  get isSettled(): boolean {
    return this.#known.count === this.#arrived;
  }

  /**
   * Resolves when `find` knows everything that was applied.
   * @throws NodeError STORE_UNAVAILABLE, STORE_CLOSED
   */
  settled(): Promise<void> {
    return this.#reach(this.#known);
  }

  get isIndexed(): boolean {
    return this.#indexed.count === this.#arrived;
  }

  /** Whether `find` knows more than the index contains, or a reset is in progress. */
  get isAhead(): boolean {
    return this.#making !== undefined || !this.#isComplete;
  }

  /**
   * Resolves when everything that was applied is in the index.
   * @throws NodeError STORE_UNAVAILABLE, STORE_CLOSED
   */
  indexed(): Promise<void> {
    return this.#reach(this.#indexed);
  }

  /**
   * Rejects all waiting callers, because the log continues for other copies and may wait for this
   * one.
   */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
    clearTimeout(this.#retry);
    this.#fail(failure("STORE_CLOSED"));
  }

  #reach(milestone: Milestone): Promise<void> {
    if (milestone.count === this.#arrived) return Promise.resolve();
    if (this.#closed) return Promise.reject(failure("STORE_CLOSED"));
    this.#start();
    return milestone.reach(this.#arrived);
  }

  #fail(error: unknown): void {
    this.#known.fail(error);
    this.#indexed.fail(error);
  }

  #add(step: Step): void {
    this.#steps.push(step);
    this.#arrived += 1;
    this.#start();
  }

  #start(): void {
    if (this.#closed) return;
    this.#running ??= this.#run().then(
      () => {
        this.#running = undefined;
        // A step may have arrived since the last check.
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

  /** Returns the next task. Only one task runs at a time. */
  #next(): (() => Promise<void>) | undefined {
    const making = this.#making;
    const [step] = this.#steps;
    if (making?.state === "filled" && making.later.length === 0) return () => this.#made();
    if (step !== undefined) {
      if (step.commit === undefined) return () => this.#startOver();
      if (making !== undefined) return () => this.#collect(making);
      if (this.position === 0) return () => this.#make();
      return () => this.#index(this.#steps);
    }
    if (making === undefined) return undefined;
    if (making.state !== "filled") return this.#isComplete ? () => this.#fill(making) : undefined;
    return () => this.#index(making.later);
  }

  /** Drops the index, because the steps before this one no longer matter. */
  async #startOver(): Promise<void> {
    await this.#make();
    this.#steps.shift();
    this.#known.advance(1);
    this.#indexed.advance(this.#known.count - this.#indexed.count);
    this.#deps.onDecided([]);
  }

  async #make(): Promise<void> {
    this.#making = undefined;
    await this.#deps.index.clear();
    const backlog = new Backlog(this.#deps.index);
    const reached = this.#deps.index.state;
    this.#making = { backlog, noted: 0, steps: 0, reached, replaced: new Set(), state: "collecting", later: [] };
  }

  /**
   * Moves the first pending steps to the backlog. After an error, the steps before it stay in the
   * backlog and are not added again.
   */
  async #collect(making: Making): Promise<void> {
    const { backlog } = making;
    const here = this.#steps.length;
    // Writes blocks that could not be written when they were added.
    await backlog.flush();
    try {
      while (making.noted < here) {
        const commit = this.#steps[making.noted]?.commit;
        if (commit === undefined || (making.noted > 0 && backlog.room < blocksOf(commit))) break;
        this.#loads.ahead(this.#steps, making.noted);
        await addToBacklog(commit, backlog, { ...this.#deps, blocksOf: (segment) => this.#loads.blocksOf(segment) });
        for (const segment of commit.entries.flatMap(segmentsOf)) this.#loads.drop(segment);
        making.noted += 1;
      }
    } finally {
      await backlog.flush();
      this.#collected(making);
    }
  }

  /** Finishes steps that are in the backlog. */
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

  /** Writes a part of the backlog to the index. */
  async #fill(making: Making): Promise<void> {
    making.state = "filling";
    if (!(await making.backlog.fill(making.reached, making.replaced))) return;
    making.state = "filled";
    this.#inIndex(making.steps, [...making.replaced]);
  }

  async #made(): Promise<void> {
    this.#making = undefined;
    await this.#deps.index.clearChunks();
  }

  /** Applies the first pending steps to the index. */
  async #index(steps: Step[]): Promise<void> {
    const changes = new IndexChanges(this.#deps.index);
    let taken = 0;
    let reached: Reached = this.#deps.index.state;
    // The data of all these steps stays in memory until they are in the index together.
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

  async #apply(changes: IndexChanges, entry: Entry, commit: Commit, before: Reached): Promise<void> {
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
    changes: IndexChanges,
    segment: Segment,
    { position, before }: { readonly position: Position; readonly before: Reached },
  ): Promise<void> {
    const { id, bytes, blocks } = segment;
    const number = this.#deps.numbers.of(id);
    const found = await this.#loads.blocksOf(segment);
    changes.addSegment(number, { id, bytes, blocks, position, isWhole: isOfWhole(segment, found) });
    for (const block of found) {
      changes.setLocation(number, block);
      if (changes.isDue) await changes.write(before);
    }
  }

  async #remove(
    changes: IndexChanges,
    { epoch, rescued }: Extract<Entry, { kind: "removed" }>,
    before: Reached,
  ): Promise<void> {
    const rescuedCids = new Set((await this.#deps.readList(rescued)).map(keyOf));
    // The index is queried for condemned blocks, so it must be up to date.
    await changes.write(before);
    for (let after: Uint8Array | undefined; ; ) {
      const page = this.#deps.index.condemnedPage(epoch, after, PAGE);
      for (const key of page) changes.decide(epoch, key, rescuedCids.has(cidOfCondemned(key)));
      after = page.at(-1);
      if (after === undefined) return;
      await changes.write(before);
    }
  }

  /** Records that `find` knows these steps. */
  #found(steps: readonly Step[]): void {
    const entries = entriesOf(steps);
    const found = this.#expected.found(entries.flatMap(segmentsOf).map(({ id }) => id));
    const decided = entries.flatMap((entry) => (entry.kind === "removed" ? [entry.epoch] : []));
    if (found.length > 0) this.#deps.onFound(found);
    if (decided.length > 0) this.#deps.onDecided(decided);
    this.#known.advance(steps.length);
  }

  /** Records that more steps, which replace these segments, are in the index. */
  #inIndex(steps: number, replaced: readonly SegmentId[]): void {
    const gone = replaced.flatMap((id) => this.#deps.numbers.find(id) ?? []);
    for (const id of replaced) this.#deps.numbers.release(id);
    if (gone.length > 0) this.#deps.onDropped(gone);
    this.#indexed.advance(steps);
  }
}

const entriesOf = (steps: readonly Step[]): Entry[] => steps.flatMap(({ commit }) => commit?.entries ?? []);

/** Returns the number of blocks in the segments that a commit adds. */
const blocksOf = ({ entries }: Commit): number =>
  entries.flatMap(segmentsOf).reduce((sum, { blocks }) => sum + blocks, 0);

const replacedBy = (entries: readonly Entry[]): SegmentId[] =>
  entries.flatMap((entry) => (entry.kind === "replaced" ? entry.segments : []));
