/**
 * A log in memory for several hosts of one process. Tests can make it unavailable, end sessions and
 * trim it.
 */
import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Append, Appended, EngineEvents, LogEngine, Page } from "#node/storage/shared/engine.ts";
import { listIn } from "#node/storage/shared/entries.ts";
import type { Commit, Entry, Position, SegmentId, StoreLock } from "#node/storage/shared/log.ts";
import { LogClient } from "#node/storage/shared/log_client.ts";
import { failure } from "#node/util/errors.ts";

/**
 * Turns of the event loop that other hosts wait for the host whose turn it is. Then they go on,
 * because the write that this host planned may have failed.
 */
const MAX_WAITS = 1000;

export class MemoryLog {
  /** While this is false, no host can reach the log. */
  available = true;
  /**
   * Called before each step of a host. An error that it throws is the result of the step, and a
   * promise delays the step.
   */
  onStep: (step: "read" | "append" | "appended", session: number) => void | Promise<void> = () => {};
  /** Commits per page. */
  pageSize = 100;
  readonly store = randomUUID();
  readonly #commits: Commit[] = [];
  /** Commits up to this position are no longer returned. */
  #trimmed: Position = 0;
  #sessions = 0;
  /** The session whose turn it is: other sessions wait for it. */
  #turn: number | undefined;
  readonly #alive = new Set<number>();
  readonly #engines = new Set<MemoryEngine>();
  /** Hosts whose commits were lost and that do not know it yet. */
  readonly #unaware = new Set<MemoryEngine>();
  /** Milliseconds, for the grace period of replaced segments. */
  clock = () => performance.now();
  readonly #doomed = new Map<SegmentId, number>();
  readonly #locks = new Map<string, { fence: number; holder: number | undefined; lose: AbortController }>();

  /** Opens the log for another host. */
  open(): LogClient {
    return new LogClient((events) => {
      const engine = new MemoryEngine(this, events);
      this.#engines.add(engine);
      return engine;
    });
  }

  get head(): Position {
    return this.#commits.length;
  }

  /** Every commit since the beginning. */
  get commits(): readonly Commit[] {
    return this.#commits;
  }

  /** Live sessions in ascending order. */
  get sessions(): readonly number[] {
    return [...this.#alive];
  }

  /**
   * Ends a session, as the database does if a host is silent for too long. The host finds out at
   * its next commit.
   */
  endSession(session: number): void {
    this.#alive.delete(session);
    for (const lock of this.#locks.values()) if (lock.holder === session) lock.holder = undefined;
  }

  /** Forgets commits up to a position; without one, all of them. */
  trim(upTo: Position = this.head): void {
    this.#trimmed = Math.max(this.#trimmed, upTo);
  }

  /**
   * Replaces all commits by others, as a restored backup does. Each host finds out at its next
   * read.
   */
  replace(...commits: readonly (readonly Entry[])[]): void {
    const replaced = commits.map((entries, at) => ({ position: at + 1, session: 0, entries, id: randomUUID() }));
    this.#commits.splice(0, this.#commits.length, ...replaced);
    for (const engine of this.#engines) this.#unaware.add(engine);
  }

  /** @internal Whether a host finds out now that its commits were lost. */
  noticesLoss(engine: MemoryEngine): boolean {
    return this.#unaware.delete(engine);
  }

  /** @internal */
  async step(step: "read" | "append" | "appended", session: number): Promise<void> {
    await this.onStep(step, session);
    if (!this.available) throw failure("STORE_UNAVAILABLE", { reason: "the log was taken away" });
  }

  /** @internal */
  begin(): number {
    this.#sessions += 1;
    this.#alive.add(this.#sessions);
    return this.#sessions;
  }

  /** @internal */
  page(after: Position): Page {
    if (after < this.#trimmed) return { commits: [], more: false, behind: true };
    const commits = this.#commits.slice(after, after + this.pageSize);
    return { commits, more: after + commits.length < this.head, behind: false };
  }

  /** @internal Returns undefined if it is another host's turn and this host `isPatient`. */
  append(
    session: number,
    { after, entries, locks, wantsTurn }: Append,
    { by, isPatient }: { readonly by: MemoryEngine; readonly isPatient: boolean },
  ): Appended | undefined {
    if (!this.#alive.has(session)) throw failure("SESSION_LOST");
    const lost = locks.filter(({ name, fence }) => this.#locks.get(name)?.fence !== fence);
    if (lost.length > 0) return { lost: lost.map(({ name }) => name) };
    if (after < this.head) {
      if (wantsTurn) this.#turn ??= session;
      return { missed: this.page(after) };
    }
    const isOfOther = this.#turn !== undefined && this.#turn !== session && this.#alive.has(this.#turn);
    if (isOfOther && isPatient) return undefined;
    this.#turn = undefined;
    if (entries.length === 0) return { position: after };
    const position = this.head + 1;
    const id = randomUUID();
    this.#commits.push({ position, session, entries: structuredClone(entries) as Entry[], id });
    for (const entry of entries)
      if (entry.kind === "replaced") for (const id of entry.segments) this.#doomed.set(id, this.clock());
    for (const engine of this.#engines) if (engine !== by) engine.notify();
    return { position, id };
  }

  /** @internal */
  present(): readonly Commit[] {
    return presentState(this.#commits);
  }

  /** @internal Returns the lock, unless a live session has it. */
  take(name: string, session: number): StoreLock | undefined {
    const current = this.#locks.get(name);
    if (current?.holder !== undefined) return undefined;
    current?.lose.abort();
    const lock = { fence: (current?.fence ?? 0) + 1, holder: session, lose: new AbortController() };
    this.#locks.set(name, lock);
    return { name, fence: lock.fence, signal: lock.lose.signal };
  }

  /** @internal */
  doomed(graceMs: number): SegmentId[] {
    return [...this.#doomed].flatMap(([id, since]) => (this.clock() - since >= graceMs ? [id] : []));
  }

  /** @internal */
  bury(ids: readonly SegmentId[]): void {
    for (const id of ids) this.#doomed.delete(id);
  }

  /** @internal */
  giveBack({ name, fence }: StoreLock): void {
    const current = this.#locks.get(name);
    if (current?.fence === fence) current.holder = undefined;
  }

  /** @internal */
  leave(engine: MemoryEngine): void {
    this.#engines.delete(engine);
    this.endSession(engine.session);
  }
}

class MemoryEngine implements LogEngine {
  readonly store: string;
  readonly #log: MemoryLog;
  readonly #events: EngineEvents;
  session: number;

  constructor(log: MemoryLog, events: EngineEvents) {
    this.#log = log;
    this.#events = events;
    this.store = log.store;
    this.session = log.begin();
  }

  notify(): void {
    queueMicrotask(() => this.#events.onNews());
  }

  /** `MemoryLog.replace` notes itself which hosts are unaware. */
  expectCommit(): void {}

  async read(after: Position): Promise<Page> {
    await this.#log.step("read", this.session);
    if (!this.#log.noticesLoss(this)) return this.#log.page(after);
    this.#events.onHistoryLost();
    return { commits: [], more: false, behind: true };
  }

  async append(append: Append): Promise<Appended> {
    const { session } = this;
    let appended: Appended | undefined;
    for (let waited = 0; appended === undefined; waited += 1) {
      await this.#log.step("append", session);
      appended = this.#log.append(session, append, { by: this, isPatient: waited < MAX_WAITS });
      if (appended === undefined) await nextTurn();
    }
    await this.#log.onStep("appended", session);
    return appended;
  }

  async *snapshot(): AsyncGenerator<readonly Commit[]> {
    await this.#log.step("read", this.session);
    const commits = this.#log.present();
    for (let at = 0; at < commits.length; at += this.#log.pageSize) {
      if (at > 0) await this.#log.step("read", this.session);
      yield commits.slice(at, at + this.#log.pageSize);
    }
  }

  async join(): Promise<void> {
    await this.#log.step("append", this.session);
    this.session = this.#log.begin();
  }

  async tryWriting(): Promise<void> {}

  async withLock<T>(name: string, run: (lock: StoreLock) => Promise<T>): Promise<{ readonly result: T } | undefined> {
    await this.#log.step("append", this.session);
    const lock = this.#log.take(name, this.session);
    if (lock === undefined) return undefined;
    try {
      return { result: await run(lock) };
    } finally {
      this.#log.giveBack(lock);
    }
  }

  async sessions(): Promise<readonly number[]> {
    await this.#log.step("read", this.session);
    return this.#log.sessions;
  }

  async hostOf(session: number): Promise<string> {
    return `host of session ${session}`;
  }

  async doomed(graceMs: number): Promise<readonly SegmentId[]> {
    await this.#log.step("read", this.session);
    return this.#log.doomed(graceMs);
  }

  async lists(): Promise<readonly string[]> {
    await this.#log.step("read", this.session);
    const named = this.#log.commits.flatMap(({ entries }) => entries.flatMap((entry) => listIn(entry) ?? []));
    return [...new Set(named)];
  }

  async buried(ids: readonly SegmentId[]): Promise<void> {
    await this.#log.step("append", this.session);
    this.#log.bury(ids);
  }

  async close(): Promise<void> {
    this.#log.leave(this);
  }
}

/**
 * Reduces commits to those that still matter: each key and each segment at its last position, and
 * every removal.
 */
export function presentState(commits: readonly Commit[]): readonly Commit[] {
  const keys = new Map<string, { readonly position: Position; readonly value: Uint8Array | undefined }>();
  const gone = new Set<SegmentId>();
  for (const { position, entries } of commits) {
    for (const entry of entries) {
      if (entry.kind === "metadata") for (const [key, value] of entry.changes) keys.set(key, { position, value });
      if (entry.kind === "replaced") for (const id of entry.segments) gone.add(id);
    }
  }
  const changes = Map.groupBy(keys, ([, { position }]) => position);
  const present: Commit[] = [];
  for (const { position, entries, id } of commits) {
    const remaining = entries.flatMap((entry): Entry[] => {
      if (entry.kind === "metadata") return [];
      const written = entry.kind === "segment" ? [entry.segment] : entry.kind === "replaced" ? entry.by : undefined;
      if (written === undefined) return [entry];
      return written.filter(({ id }) => !gone.has(id)).map((segment) => ({ kind: "segment", segment }));
    });
    const set = (changes.get(position) ?? []).flatMap(([key, { value }]) => (value ? [[key, value] as const] : []));
    if (set.length > 0) remaining.push({ kind: "metadata", changes: set });
    const isLast = position === commits.length;
    if (remaining.length > 0 || isLast)
      present.push({ position, session: 0, entries: remaining, ...(isLast && id && { id }) });
  }
  return present;
}
