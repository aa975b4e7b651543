/**
 * The log as one host sees it, independent of the database that stores it. Passes commits to the
 * copies in order, and groups concurrent calls into one commit.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { failure, NodeError } from "../../util/errors.ts";
import type { Appended, EngineEvents, LogEngine, Page } from "./engine.ts";
import type { Applier, Commit, Draft, Entry, Position, SharedLog, StoreLock } from "./log.ts";

/** Maximum number of calls that share a commit. */
const MAX_GROUP = 256;
/** A commit with this many bytes of values takes no more calls. */
const GROUP_BYTES = 4 * 2 ** 20;
/** Number of times that other hosts may be faster before a commit requests its turn. */
const MAX_RACES = 3;
const REJOIN_DELAY_MS = 500;
/**
 * Maximum number of snapshots in a row that do not lead to the current state. Another snapshot
 * would not help.
 */
const MAX_SNAPSHOTS = 4;

interface Call {
  readonly run: (head: Position) => Draft<unknown>;
  readonly lock: StoreLock | undefined;
  readonly done: PromiseWithResolvers<unknown>;
}

/** A copy and its position when it began to follow the log. */
interface Copy {
  readonly applier: Applier;
  from: Position;
}

type Outcome = { readonly call: Call } & ({ readonly draft: Draft<unknown> } | { readonly error: unknown });

export class LogClient implements SharedLog {
  /**
   * Commits written, calls whose changes they contain, attempts that came too late, reads of the
   * log, snapshots taken, and lost sessions.
   */
  readonly counts = { commits: 0, calls: 0, races: 0, reads: 0, snapshots: 0, sessionsLost: 0 };
  readonly #engine: LogEngine;
  #rejoin = (join: () => Promise<void>): Promise<void> => join();
  readonly #copies: Copy[] = [];
  #applied: Position = 0;
  #started = false;
  /** Whether copies on the disk may belong to another history of the log. */
  #isDoubtful = false;
  /** Whether the copies have commits that the log has lost, until a snapshot replaces them. */
  #isOutdated = false;
  #calls: Call[] = [];
  #writing: Promise<void> | undefined;
  #reading: Promise<void> | undefined;
  #nextReading: Promise<void> | undefined;
  /** Set while a snapshot replaces the content of the copies. */
  #resetting: Promise<void> | undefined;
  #joining: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(open: (events: EngineEvents) => LogEngine) {
    this.#engine = open({
      onNews: () => {
        if (this.#started && !this.#closing.signal.aborted) this.refresh().catch(() => {});
      },
      onSessionLost: () => this.#loseSession(),
      onHistoryLost: () => {
        this.#isOutdated = true;
      },
    });
  }

  /** Number of `commit` calls that have not settled. */
  get waiting(): number {
    return this.#calls.length;
  }

  get store(): string {
    return this.#engine.store;
  }

  get session(): number {
    return this.#engine.session;
  }

  get applied(): Position {
    return this.#applied;
  }

  follow(applier: Applier): void {
    if (this.#started) throw new Error("a copy must begin to follow a log before the log is read");
    this.#copies.push({ applier, from: 0 });
  }

  onSessionLost(rejoin: (join: () => Promise<void>) => Promise<void>): void {
    this.#rejoin = rejoin;
  }

  async refresh(): Promise<void> {
    this.#start();
    if (this.#reading === undefined) {
      this.#reading = this.#catchUp().finally(() => {
        this.#reading = undefined;
      });
      return this.#reading;
    }
    // The running read may already be past the commits that the caller waits for.
    this.#nextReading ??= this.#reading
      .catch(() => {})
      .then(() => {
        this.#nextReading = undefined;
        return this.refresh();
      });
    return this.#nextReading;
  }

  async commit<T>(run: (head: Position) => Draft<T>, lock?: StoreLock): Promise<T> {
    this.#start();
    if (this.#joining !== undefined) throw failure("SESSION_LOST");
    const done = Promise.withResolvers<unknown>();
    this.#calls.push({ run, lock, done });
    this.#writing ??= this.#write();
    return (await done.promise) as T;
  }

  withLock<T>(name: string, run: (lock: StoreLock) => Promise<T>): Promise<{ readonly result: T } | undefined> {
    return this.#engine.withLock(name, run);
  }

  tryWriting(): Promise<void> {
    return this.#engine.tryWriting();
  }

  sessions(): Promise<readonly number[]> {
    return this.#engine.sessions();
  }

  hostOf(session: number): Promise<string> {
    return this.#engine.hostOf(session);
  }

  deletableObjects(graceMs: number): Promise<readonly string[]> {
    return this.#engine.doomed(graceMs);
  }

  lists(): Promise<readonly string[]> {
    return this.#engine.lists();
  }

  markDeleted(ids: readonly string[]): Promise<void> {
    return this.#engine.buried(ids);
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    await this.#writing;
    await Promise.allSettled([this.#reading, this.#joining]);
    await this.#engine.close();
  }

  #start(): void {
    if (this.#closing.signal.aborted) throw failure("STORE_CLOSED");
    if (this.#started) return;
    this.#started = true;
    const positions = this.#copies.map(({ applier }) => this.#resumePosition(applier));
    this.#applied = Math.min(...positions.filter((position) => position !== undefined), Number.POSITIVE_INFINITY);
    if (this.#applied === Number.POSITIVE_INFINITY) this.#applied = 0;
    for (const [at, copy] of this.#copies.entries()) copy.from = positions[at] ?? this.#applied;
  }

  /** Returns the position from which a copy continues. */
  #resumePosition(applier: Applier): Position | undefined {
    const { position, commit } = applier;
    if (position === undefined || position === 0) return position;
    if (commit === undefined) {
      applier.reset();
      return 0;
    }
    this.#isDoubtful = true;
    this.#engine.expectCommit(position, commit);
    return position;
  }

  async #catchUp(): Promise<void> {
    this.counts.reads += 1;
    let snapshots = 0;
    for (;;) {
      const after = this.#applied;
      const page = await this.#engine.read(after);
      if (this.#isOutdated) {
        // The page may follow commits of the new history that the copies lack.
      } else if (!page.behind) {
        this.#applyCommits(page.commits);
        if (page.more) {
          await this.#settled();
          snapshots = 0;
          continue;
        }
        if (this.#copies.every(({ from }) => from <= this.#applied)) break;
        // The log ends before the position of a copy: commits were lost.
      } else if (after < this.#applied) {
        // This host committed while it read, and the log was trimmed up to that commit.
        continue;
      }
      if (snapshots >= MAX_SNAPSHOTS) throw contradiction();
      snapshots += 1;
      this.#resetting = this.#takeSnapshot().finally(() => {
        this.#resetting = undefined;
      });
      await this.#resetting;
    }
    this.#isDoubtful = false;
    for (const { applier } of this.#copies) applier.caughtUp?.();
  }

  #applyCommits(commits: readonly Commit[]): void {
    for (const commit of commits) {
      if (commit.position <= this.#applied) continue;
      for (const { applier, from } of this.#copies) if (commit.position > from) applier.apply(commit);
      this.#applied = commit.position;
    }
  }

  async #takeSnapshot(): Promise<void> {
    this.counts.snapshots += 1;
    this.#isOutdated = false;
    this.#applied = 0;
    for (const copy of this.#copies) {
      copy.from = 0;
      copy.applier.reset();
    }
    for await (const commits of this.#engine.snapshot()) {
      this.#applyCommits(commits);
      await this.#settled();
    }
  }

  async #settled(): Promise<void> {
    await Promise.all(this.#copies.map(({ applier }) => applier.settled?.()));
  }

  async #write(): Promise<void> {
    while (this.#calls.length > 0) {
      try {
        await this.#writeGroup();
      } catch (error) {
        if (NodeError.is(error) && error.code === "SESSION_LOST") this.#loseSession();
        for (const { done } of this.#calls.splice(0)) done.reject(error);
      }
    }
    this.#writing = undefined;
  }

  /** @throws NodeError SESSION_LOST, STORE_UNAVAILABLE, which affect every waiting call */
  async #writeGroup(): Promise<void> {
    for (let races = 0; ; races += 1) {
      // Entries can only be calculated on copies that have the current state.
      if (this.#resetting !== undefined || this.#isDoubtful || this.#isOutdated) await this.refresh();
      const result = await this.#attempt(races >= MAX_RACES);
      if (typeof result === "function") return await result();
      this.counts.races += 1;
      if (result.behind || result.more || this.#resetting !== undefined) await this.refresh();
      else this.#applyCommits(result.commits);
    }
  }

  /**
   * Tries to commit. Resolves with the page of commits that this host missed, or with the function
   * that settles the callers after a durable commit.
   */
  async #attempt(wantsTurn: boolean): Promise<Page | (() => Promise<void>)> {
    const { session } = this.#engine;
    const after = this.#applied;
    const outcomes = this.#compose(after, session);
    const drafts = outcomes.flatMap((outcome) => ("draft" in outcome ? [outcome] : []));
    const entries = drafts.flatMap(({ draft }) => draft.entries);
    const locks = drafts.flatMap(({ call }) => call.lock ?? []);
    const result: Appended =
      entries.length === 0 && locks.length === 0
        ? await this.#stillLast(after)
        : await this.#engine.append({ after, entries, locks, wantsTurn });
    if ("missed" in result) return result.missed;
    if ("lost" in result) {
      this.#rejectLosers(result.lost);
      return { commits: [], more: false, behind: false };
    }
    return async () => {
      if (entries.length > 0) await this.#applyOwn({ position: result.position, session, entries, id: result.id });
      this.#settleCalls(outcomes);
    };
  }

  /**
   * A result without entries is valid only if no other commit has been written since the copies
   * were read.
   */
  async #stillLast(after: Position): Promise<Appended> {
    const missed = await this.#engine.read(after);
    return missed.behind || missed.commits.length > 0 ? { missed } : { position: after };
  }

  #compose(head: Position, session: number): Outcome[] {
    const outcomes: Outcome[] = [];
    let bytes = 0;
    for (const call of this.#calls) {
      if (outcomes.length === MAX_GROUP || bytes > GROUP_BYTES) break;
      try {
        const draft = call.run(head);
        if (draft.entries.some((entry) => isOfOther(session, entry))) throw failure("SESSION_LOST");
        bytes += draft.entries.reduce((sum, entry) => sum + sizeOf(entry), 0);
        outcomes.push({ call, draft });
      } catch (error) {
        outcomes.push({ call, error });
      }
    }
    return outcomes;
  }

  async #applyOwn(commit: Commit): Promise<void> {
    this.counts.commits += 1;
    if (this.#resetting === undefined && this.#applied === commit.position - 1) this.#applyCommits([commit]);
    // Otherwise a running read or snapshot contains the log from here on.
    while (this.#resetting !== undefined || this.#applied < commit.position) await this.refresh();
  }

  #settleCalls(outcomes: readonly Outcome[]): void {
    this.counts.calls += outcomes.length;
    this.#calls = this.#calls.slice(outcomes.length);
    for (const outcome of outcomes) {
      if ("draft" in outcome) outcome.call.done.resolve(outcome.draft.result);
      else outcome.call.done.reject(outcome.error);
    }
  }

  #rejectLosers(names: readonly string[]): void {
    this.#calls = this.#calls.filter(({ lock, done }) => {
      if (lock === undefined || !names.includes(lock.name)) return true;
      done.reject(failure("LOCK_LOST", { name: lock.name }));
      return false;
    });
  }

  #loseSession(): void {
    if (this.#joining !== undefined || this.#closing.signal.aborted) return;
    this.counts.sessionsLost += 1;
    this.#joining = this.#joinAgain().finally(() => {
      this.#joining = undefined;
    });
  }

  async #joinAgain(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      try {
        return await this.#rejoin(() => this.#engine.join());
      } catch {
        // The engine counts failures; in the meantime, calls fail with SESSION_LOST.
        await sleep(REJOIN_DELAY_MS, undefined, { ref: false, signal: this.#closing.signal }).catch(() => {});
      }
    }
  }
}

const contradiction = (): NodeError =>
  failure("STORE_UNAVAILABLE", {
    reason: "the rows of the log contradict each other; put the schema back from a backup of the database",
  });

/**
 * Whether an entry names a segment of another session. Nobody ensures that the object of such a
 * segment exists.
 */
function isOfOther(session: number, entry: Entry): boolean {
  const written = entry.kind === "segment" ? [entry.segment] : entry.kind === "replaced" ? entry.by : [];
  return written.some(({ id }) => id.split("-")[0] !== session.toString(36));
}

const sizeOf = (entry: Entry): number =>
  entry.kind === "metadata"
    ? entry.changes.reduce((sum, [key, value]) => sum + key.length + (value?.length ?? 0), 0)
    : entry.kind === "segment"
      ? (entry.segment.index?.length ?? 0)
      : 0;
