/**
 * Metadata that several hosts share. Each host has a copy, and every change goes through the log.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { failure, NodeError } from "../../util/errors.ts";
import { compareAndSet, keyBytes, OverlayTransaction, runSynchronously } from "../metadata/overlay_transaction.ts";
import type { KeyPage, KeyRange, MetadataReader, MetadataStore, MetadataWriter } from "../metadata/store.ts";
import type { Applier, Commit, Position, Reached, SharedLog } from "./log.ts";

/**
 * Key in the copy for its position, its log and the commit at that position. It is the first
 * possible key, and users cannot use it.
 */
const positionKey = "\u0000";
/** Milliseconds before a failed write of the copy is tried again. */
const RETRY_MS = 1000;

/** A transaction that waits for a commit. */
interface Waiting {
  readonly run: (writer: MetadataWriter) => unknown;
  readonly done: PromiseWithResolvers<unknown>;
}

type Outcome = { readonly result: unknown } | { readonly error: unknown };

/**
 * Metadata in the log. `run` of a transaction may be called several times on states that turn out
 * not to be the last, so it must only calculate and write. Reads return everything that any host
 * committed before them, and fail when the store is unreachable.
 *
 * @throws NodeError STORE_UNAVAILABLE, SESSION_LOST
 */
export class SharedMetadata implements MetadataStore {
  readonly #log: SharedLog;
  readonly #copy: Copy;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  #closed = false;

  private constructor(log: SharedLog, copy: Copy) {
    this.#log = log;
    this.#copy = copy;
    log.follow(copy);
  }

  /** Calls `listener` with each key that any host has changed, when the change is applied. */
  onChange(listener: (key: string) => void): void {
    this.#copy.listeners.add(listener);
  }

  /**
   * Opens shared metadata. `copy` belongs to this host and may be empty. It is closed together with
   * this store; the log is not. A failed write of the copy is tried again after `retryMs`.
   */
  static async open(log: SharedLog, copy: MetadataStore, { retryMs = RETRY_MS } = {}): Promise<SharedMetadata> {
    const [position = 0, store, commit] = Buffer.from((await copy.get(positionKey)) ?? [])
      .toString()
      .split(" ");
    const isOfThis = store === log.store;
    const reached = isOfThis ? { position: Number(position), commit: commit || undefined } : { position: 0 };
    const ownCopy = new Copy(copy, log.store, reached, retryMs);
    if (!isOfThis) ownCopy.reset();
    return new SharedMetadata(log, ownCopy);
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    await this.#refresh();
    return this.#copy.get(key);
  }

  async has(key: string): Promise<boolean> {
    return (await this.get(key)) !== undefined;
  }

  async *range(range?: KeyRange): AsyncGenerator<readonly [string, Uint8Array]> {
    await this.#refresh();
    await this.#copy.settled();
    yield* this.#copy.range(range);
  }

  async keys(page: KeyPage): Promise<readonly string[]> {
    await this.#refresh();
    await this.#copy.settled();
    return this.#copy.keys(page);
  }

  async transaction<T>(run: (writer: MetadataWriter) => T): Promise<T> {
    this.#mustBeOpen();
    const done = Promise.withResolvers<unknown>();
    this.#waiting.push({ run, done });
    this.#writing ??= this.#write();
    return (await done.promise) as T;
  }

  compareAndSet(key: string, expected: Uint8Array | undefined, value: Uint8Array | undefined): Promise<boolean> {
    return this.transaction(compareAndSet(key, expected, value));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#writing;
    await this.#copy.close();
  }

  async #refresh(): Promise<void> {
    this.#mustBeOpen();
    await this.#log.refresh();
    this.#mustBeOpen();
  }

  #mustBeOpen(): void {
    if (this.#closed) throw failure("STORE_CLOSED");
  }

  /**
   * Writes commits one after the other, each with all transactions that wait when it is calculated.
   */
  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      let taken = 0;
      try {
        const outcomes = await this.#log.commit(() => {
          const { outcomes, changes } = this.#copy.calculate(this.#waiting);
          taken = outcomes.length;
          return { entries: changes.length === 0 ? [] : [{ kind: "metadata", changes }], result: outcomes };
        });
        for (const [at, { done }] of this.#waiting.splice(0, outcomes.length).entries()) {
          const outcome = outcomes[at] as Outcome;
          if ("error" in outcome) done.reject(outcome.error);
          else done.resolve(outcome.result);
        }
      } catch (error) {
        for (const { done } of this.#waiting.splice(0, Math.max(taken, 1))) done.reject(error);
      }
    }
    this.#writing = undefined;
  }
}

/** Changes that are written to the store together. */
interface Batch {
  /** Whether all entries of the store are removed first. */
  isReset: boolean;
  position: Position;
  /** The id of the commit at this position. */
  commit: string | undefined;
  readonly changes: Map<string, Uint8Array | undefined>;
}

const emptyBatch = (): Batch => ({ isReset: false, position: 0, commit: undefined, changes: new Map() });
const isEmpty = ({ isReset, position }: Batch): boolean => !isReset && position === 0;

/** The copy of this host. It is written after the log, many commits at a time. */
class Copy implements Applier {
  readonly position: Position;
  readonly commit: string | undefined;
  readonly listeners = new Set<(key: string) => void>();
  readonly #store: MetadataStore;
  readonly #logStore: string;
  readonly #retryMs: number;
  /** Applied changes that are not being written yet. */
  #applied = emptyBatch();
  #beingWritten = emptyBatch();
  #writing: Promise<void> | undefined;
  /** The current attempt to write; never rejects. */
  #attempt: Promise<void> | undefined;
  /** Why the last attempt failed. */
  #fault: NodeError | undefined;
  readonly #closing = new AbortController();

  constructor(store: MetadataStore, logStore: string, { position, commit }: Reached, retryMs: number) {
    this.#store = store;
    this.#logStore = logStore;
    this.position = position;
    this.commit = commit;
    this.#retryMs = retryMs;
  }

  apply({ position, entries, id }: Commit): void {
    for (const entry of entries) {
      if (entry.kind !== "metadata") continue;
      for (const [key, value] of entry.changes) {
        this.#applied.changes.set(key, value);
        for (const notify of this.listeners) notify(key);
      }
    }
    this.#applied.position = position;
    this.#applied.commit = id;
    this.#writing ??= this.#write();
  }

  reset(): void {
    this.#applied = { ...emptyBatch(), isReset: true };
    this.#writing ??= this.#write();
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    keyBytes(key);
    for (const { changes, isReset } of [this.#applied, this.#beingWritten]) {
      if (changes.has(key)) return changes.get(key);
      if (isReset) return undefined;
    }
    return key === positionKey ? undefined : await this.#store.get(key);
  }

  /** Returns entries of the store. After `settled`, these include all changes. */
  range(range?: KeyRange): AsyncIterable<readonly [string, Uint8Array]> {
    return this.#store.range(behindPosition(range));
  }

  keys({ limit, ...bounds }: KeyPage): Promise<readonly string[]> {
    return this.#store.keys({ ...behindPosition(bounds), limit });
  }

  async settled(): Promise<void> {
    while (!isEmpty(this.#applied) || !isEmpty(this.#beingWritten)) {
      // The copy is closing and writes nothing more. The log continues for other copies and may
      // wait for this one.
      if (this.#closing.signal.aborted) throw failure("STORE_CLOSED");
      if (this.#fault !== undefined) throw this.#fault;
      await this.#attempt;
    }
  }

  /**
   * Runs transactions on top of the applied state, each on top of those before it.
   * @throws NodeError when the copy is behind
   */
  calculate(transactions: readonly Waiting[]): {
    readonly outcomes: readonly Outcome[];
    readonly changes: readonly (readonly [string, Uint8Array | undefined])[];
  } {
    if (this.#fault !== undefined) throw this.#fault;
    let outcomes: readonly Outcome[] = [];
    let changes: readonly (readonly [string, Uint8Array | undefined])[] = [];
    // Every metadata store runs a transaction before `transaction` returns, on top of transactions
    // that are still being written.
    const read = this.#store.transaction((stored) => {
      const applied = new OverlayTransaction(this.#applied.isReset ? nothing : withoutPosition(stored));
      for (const [key, value] of this.#applied.changes) applied.changes.set(key, value);
      const together = new OverlayTransaction(applied);
      outcomes = transactions.map(({ run }) => outcomeOf(run, together));
      changes = [...together.changes];
    });
    read.catch(() => {});
    return { outcomes, changes };
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#writing;
    await this.#store.close();
  }

  async #write(): Promise<void> {
    // Commits that are applied in the same tick are written together.
    this.#attempt = Promise.resolve();
    await this.#attempt;
    while (!isEmpty(this.#applied) && !this.#closing.signal.aborted) {
      this.#beingWritten = this.#applied;
      this.#applied = emptyBatch();
      this.#attempt = this.#writeBatch(this.#beingWritten);
      await this.#attempt;
      if (this.#fault === undefined) continue;
      await sleep(this.#retryMs, undefined, { ref: false, signal: this.#closing.signal }).catch(() => {});
    }
    this.#writing = undefined;
  }

  async #writeBatch(batch: Batch): Promise<void> {
    try {
      await this.#store.transaction((writer) => {
        if (batch.isReset) for (const [key] of [...writer.range()]) writer.delete(key);
        for (const [key, value] of batch.changes) {
          if (value === undefined) writer.delete(key);
          else writer.put(key, value);
        }
        writer.put(positionKey, Buffer.from(`${batch.position} ${this.#logStore} ${batch.commit ?? ""}`));
      });
      this.#fault = undefined;
    } catch (error) {
      this.#fault = NodeError.is(error)
        ? error
        : failure("METADATA_NOT_WRITTEN", { reason: (error as Error).message }, error);
      if (!this.#applied.isReset) this.#applied = joined(batch, this.#applied);
    }
    this.#beingWritten = emptyBatch();
  }
}

const joined = (first: Batch, then: Batch): Batch => ({
  isReset: first.isReset,
  position: then.position || first.position,
  commit: then.position > 0 ? then.commit : first.commit,
  changes: new Map([...first.changes, ...then.changes]),
});

function outcomeOf(run: Waiting["run"], base: OverlayTransaction): Outcome {
  try {
    const overlay = new OverlayTransaction(base);
    const result = runSynchronously(run, overlay);
    if (overlay.changes.has(positionKey))
      throw failure("METADATA_KEY_INVALID", { reason: "the key of one NUL character is reserved in a shared store" });
    base.apply(overlay);
    return { result };
  } catch (error) {
    return { error };
  }
}

const nothing: MetadataReader = { get: () => undefined, has: () => false, range: () => [] };

const behindPosition = (range: KeyRange = {}): KeyRange => ({ ...range, after: range.after || positionKey });

const withoutPosition = (reader: MetadataReader): MetadataReader => ({
  get: (key) => (key === positionKey ? undefined : reader.get(key)),
  has: (key) => key !== positionKey && reader.has(key),
  range: (range) => reader.range(behindPosition(range)),
});
