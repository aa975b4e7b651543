/**
 * Garbage collection of hosts that share a store: one of them collects, and asks all others what calls under way there refer to.
 * No step depends on how long anything takes, and none on a clock.
 */
import type { CID } from "multiformats/cid";
import { CidSet } from "../../../formats/cid/set.ts";
import { batches } from "../../../util/async/batches.ts";
import { failure } from "../../../util/errors.ts";
import type { MetadataStore } from "../../metadata/store.ts";
import { decodeEntries, encodeEntries } from "../entries.ts";
import type { CollectionEnd } from "../figures.ts";
import type { Applier, BlockList, Commit, Draft, Entry, HeldLock, Position, SharedLog } from "../log.ts";
import type { CondemnableBlocks } from "./blocks.ts";
import { pause } from "./pause.ts";

/** Reads a block, also one that is condemned; undefined when it is not stored. */
export type FindBlock = CondemnableBlocks["find"];

export interface CollectionsDeps {
  readonly log: SharedLog;
  readonly metadata: MetadataStore;
  readonly blocks: CondemnableBlocks;
  /** Whether this key of the metadata names roots. */
  readonly isRoot: (key: string) => boolean;
  /** Milliseconds: between two looks at what does not tell, and before a collection that nobody leads is ended. */
  readonly pollMs?: number;
  readonly settleMs?: number;
  /** Milliseconds without any answer of the hosts that are left, after which a collection is given up. */
  readonly answerMs?: number | undefined;
}

export interface MarkOptions {
  readonly signal?: AbortSignal | undefined;
  /** Only what pins keep. */
  readonly pinned?: boolean;
}

/** What a host knows of its own calls. */
export interface CollectingHost {
  /** Runs while no call of this host adds blocks or begins to refer to some: with its own lock of garbage collection. */
  readonly alone: <T>(run: () => Promise<T>) => Promise<T>;
  /** Called within `alone`: calls that have given up the lock for a while end with SESSION_LOST when they take it again. */
  readonly voidCalls: () => void;
  /** Adds what committed roots keep; several times with the same `kept`. @throws NodeError when one cannot be walked */
  readonly mark: (kept: CidSet, find: FindBlock, options: MarkOptions) => Promise<void>;
  /** What calls under way here refer to, as far as it is stored. */
  readonly guarded: (find: FindBlock) => AsyncIterable<CID>;
}

/** Before calls are served. */
const idle: CollectingHost = {
  alone: (run) => run(),
  voidCalls: () => {},
  mark: async () => {
    throw new Error("there is no node yet that knows the roots");
  },
  async *guarded() {},
};

export interface CollectOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called for each block when it is gone. */
  readonly tell?: ((removed: CID) => void) | undefined;
}

type Condemned = Extract<Entry, { kind: "condemned" }>;

/** A collection that has condemned blocks and has not decided yet. */
interface Undecided {
  readonly entry: Condemned;
  /** By session. */
  readonly acknowledged: Map<number, BlockList>;
  /** What this host has acknowledged it in. */
  session: number | undefined;
}

const lockName = "gc";
/** Of the metadata, with the entry, from the one step to the other: for hosts that begin in between. */
const undecidedKey = "gc/undecided";
const POLL_MS = 1000;
const SETTLE_MS = 15_000;
/** Longer than a call holds off a collection: writers give way, and metadata is written in seconds. */
const ANSWER_MS = 5 * 60_000;
const BATCH = 512;

export class Collections implements Applier {
  readonly position = undefined;
  readonly #deps: CollectionsDeps;
  #host = idle;
  /** Somebody has the local lock, and waits for this. */
  #isHeld = false;
  #undecided: Undecided | undefined;
  /** A root was written since this was last set. */
  #hasNewRoots = false;
  #resets = 0;
  #change = Promise.withResolvers<void>();
  /** The acknowledgement that is under way, and what follows it. */
  #task: Promise<void> | undefined;
  readonly #closing = new AbortController();
  /** The last one that has ended since this was opened. */
  last: CollectionEnd | undefined;

  /** Before the log is read. */
  constructor(deps: CollectionsDeps) {
    this.#deps = deps;
    deps.log.follow(this);
    deps.log.onSessionLost((join) => this.#rejoin(join));
  }

  /** From now on there are calls. */
  serve(host: CollectingHost): void {
    this.#host = host;
  }

  /** Before calls are served. @throws NodeError STORE_UNAVAILABLE */
  async start(): Promise<void> {
    const { log, metadata, blocks } = this.#deps;
    await log.refresh();
    const held = await metadata.get(undecidedKey);
    const entries = held === undefined ? [] : decodeEntries(Buffer.from(held));
    if (entries === undefined) throw failure("STORE_UNAVAILABLE", { reason: `${undecidedKey} cannot be read` });
    const [entry] = entries;
    if (entry?.kind !== "condemned") return;
    await blocks.suspend(entry.epoch);
    if (this.#undecided === undefined) this.#begin(entry);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#changed();
    await this.#task;
  }

  apply({ session, entries }: Commit): void {
    for (const entry of entries) {
      if (entry.kind === "metadata") this.#hasNewRoots ||= entry.changes.some(([key]) => this.#deps.isRoot(key));
      if (entry.kind === "condemned") this.#begin(entry);
      const undecided = this.#undecided;
      if (undecided === undefined || !("epoch" in entry) || entry.epoch !== undecided.entry.epoch) continue;
      if (entry.kind === "acknowledged") undecided.acknowledged.set(session, entry.rescued);
      if (entry.kind === "removed") {
        this.#undecided = undefined;
        if (session !== 0) this.last = { at: Date.now(), removed: undefined };
      }
      this.#changed();
    }
  }

  reset(): void {
    this.#resets += 1;
    this.#undecided = undefined;
    this.#changed();
  }

  /**
   * Removes blocks that no root keeps, and no call under way on any host. While another one collects, on any host, it waits until
   * that is over.
   *
   * @throws NodeError STORE_UNAVAILABLE, SESSION_LOST, LOCK_LOST, and of `mark`: nothing is removed
   */
  async collect({ signal, tell }: CollectOptions = {}): Promise<{ readonly removed: number }> {
    const { blocks } = this.#deps;
    for (;;) {
      const change = this.#change.promise;
      const removed = await this.#lead({ signal, tell }, async (upTo, kept) => {
        async function* garbage() {
          for await (const cid of blocks.stored(upTo)) {
            signal?.throwIfAborted();
            if (!kept.has(cid)) yield cid;
          }
        }
        return garbage();
      });
      if (removed !== undefined) return { removed };
      await this.#pause(change, signal);
    }
  }

  /**
   * Removes these blocks, except those that pins keep, or calls under way on other hosts. The caller has the local lock of garbage
   * collection, and so does not wait for others. @throws NodeError COLLECTING while another host is at it
   */
  async remove(cids: readonly CID[]): Promise<void> {
    this.#isHeld = true;
    try {
      const done = await this.#lead({ pinned: true }, async (_upTo, kept) => cids.filter((cid) => !kept.has(cid)));
      if (done === undefined) throw failure("COLLECTING");
    } finally {
      this.#isHeld = false;
    }
  }

  /**
   * Runs while no block is removed, by any host; those who want to wait, and `block/rm` is refused. While another one collects it waits.
   *
   * @throws what `run` throws; NodeError STORE_UNAVAILABLE, SESSION_LOST; LOCK_LOST: something may have been removed
   */
  async paused<T>(run: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { log } = this.#deps;
    for (;;) {
      const change = this.#change.promise;
      const done = await log.withLock(lockName, async (lock) => {
        await this.#settle(lock);
        const result = await run();
        await log.commit(() => ({ entries: [], result: undefined }), lock);
        return result;
      });
      if (done !== undefined) return done.result;
      await this.#pause(change, signal);
    }
  }

  /** Undefined when another host has the lock. */
  async #lead(
    options: CollectOptions & MarkOptions,
    choose: (upTo: Position, kept: CidSet) => Promise<AsyncIterable<CID> | Iterable<CID>>,
  ): Promise<number | undefined> {
    const { log, blocks } = this.#deps;
    const led = await log.withLock(lockName, async (lock) => {
      await this.#settle(lock);
      await log.refresh();
      const upTo = log.applied;
      const kept = new CidSet();
      this.#hasNewRoots = false;
      await this.#host.mark(kept, blocks.find, options);
      const list = await blocks.writeList(await choose(upTo, kept));
      if (isEmpty(list)) {
        this.last = { at: Date.now(), removed: 0 };
        return 0;
      }
      return await this.#remove({ kind: "condemned", epoch: lock.fence, upTo, list }, kept, lock, options);
    });
    return led?.result;
  }

  async #remove(
    entry: Condemned,
    kept: CidSet,
    lock: HeldLock,
    options: CollectOptions & MarkOptions,
  ): Promise<number> {
    const { signal, tell } = options;
    const { log, blocks } = this.#deps;
    const resets = this.#resets;
    const rescued = new CidSet();
    const isRescued = (cid: CID) => kept.has(cid) || rescued.has(cid);
    await log.commit(() => ({ entries: [entry, setUndecided(encodeEntries([entry]))], result: undefined }), lock);
    try {
      const asked = new Set(await log.sessions());
      let [left, since] = [asked.size, performance.now()];
      for (;;) {
        const undecided = this.#undecided;
        if (undecided?.entry.epoch !== entry.epoch || resets !== this.#resets)
          throw new Error("the log was lost sight of");
        const change = this.#change.promise;
        const missing = (await log.sessions()).filter((id) => asked.has(id) && !undecided.acknowledged.has(id));
        if (missing.length === 0) break;
        if (missing.length < left) [left, since] = [missing.length, performance.now()];
        await this.#requireAnswer(missing, since);
        await this.#pause(change, lock.signal, signal);
      }
      // What sessions have written that are over by now, and everything before the acknowledgements.
      await log.refresh();
      if (this.#hasNewRoots) await this.#host.mark(kept, blocks.find, options);
      for (const list of this.#undecided?.acknowledged.values() ?? []) {
        for await (const cid of blocks.readList(list)) rescued.add(cid);
      }
      const back = await blocks.writeList(filtered(blocks.readList(entry.list), isRescued));
      await log.commit(() => this.#decision(entry, back), lock);
    } catch (error) {
      // Otherwise another host does it, when this one has lost the lock.
      await this.#settle(lock).catch(() => {});
      throw error;
    }
    let removed = 0;
    for await (const cid of blocks.readList(entry.list)) {
      if (isRescued(cid)) continue;
      removed += 1;
      tell?.(cid);
    }
    this.last = { at: Date.now(), removed };
    return removed;
  }

  /** A host whose lease goes on, and which does not answer, holds up nobody for good. @throws NodeError COLLECTION_UNANSWERED */
  async #requireAnswer(missing: readonly number[], since: number): Promise<void> {
    const { log, answerMs = ANSWER_MS } = this.#deps;
    if (performance.now() - since < answerMs) return;
    const hosts = (await Promise.all(missing.map((session) => log.hostOf(session)))).join(", ");
    throw failure("COLLECTION_UNANSWERED", { seconds: Math.round(answerMs / 1000), hosts });
  }

  #decision({ epoch }: Condemned, rescued: BlockList): Draft<void> {
    if (this.#undecided?.entry.epoch !== epoch) throw new Error("the collection was ended by another host");
    return { entries: [{ kind: "removed", epoch, rescued }, setUndecided(undefined)], result: undefined };
  }

  /** Ends the collection of a host that is gone: nothing is removed. */
  async #settle(lock: HeldLock): Promise<void> {
    await this.#deps.log.refresh();
    const undecided = this.#undecided;
    if (undecided === undefined) return;
    await this.#deps.log.commit(() => this.#decision(undecided.entry, undecided.entry.list), lock);
  }

  #begin(entry: Condemned): void {
    const undecided: Undecided = { entry, acknowledged: new Map(), session: undefined };
    this.#undecided = undecided;
    // Only once what is being applied is: it may be decided there.
    const before = this.#task;
    const task = (async () => {
      await before;
      await this.#follow(undecided);
    })();
    this.#task = task;
    this.#changed();
  }

  /** Acknowledges it, in each session anew, until it is decided; where nobody leads it any more, ends it. */
  async #follow(undecided: Undecided): Promise<void> {
    const { log, settleMs = SETTLE_MS } = this.#deps;
    let since = performance.now();
    while (this.#undecided === undecided && !this.#closing.signal.aborted) {
      const change = this.#change.promise;
      try {
        await log.refresh();
        if (this.#undecided !== undecided) return;
        if (undecided.session !== log.session) {
          await this.#acknowledge(undecided);
          since = performance.now();
        } else if (performance.now() - since >= settleMs) {
          since = performance.now();
          await log.withLock(lockName, (lock) => this.#settle(lock));
        }
      } catch {
        // The store is away, or the session is lost: again in a moment.
      }
      await this.#pause(change).catch(() => {});
    }
  }

  /** Until something changes, or it is time to look. @throws the reason of a signal, or that this is being closed */
  async #pause(change: Promise<void>, ...signals: readonly (AbortSignal | undefined)[]): Promise<void> {
    const given = signals.filter((signal) => signal !== undefined);
    await pause(change, this.#deps.pollMs ?? POLL_MS, AbortSignal.any([this.#closing.signal, ...given]));
  }

  async #acknowledge(undecided: Undecided): Promise<void> {
    const { log, blocks } = this.#deps;
    const { alone, guarded } = this.#host;
    const { epoch } = undecided.entry;
    const { session } = log;
    const rescued: CID[] = [];
    const suspend = async () => {
      await blocks.suspend(epoch);
      for await (const batch of batches(guarded(blocks.find), BATCH))
        rescued.push(...(await blocks.condemned(epoch, batch)));
      await blocks.restore(epoch, rescued);
    };
    await (this.#isHeld ? suspend() : alone(suspend));
    const list = await blocks.writeList(rescued);
    await log.commit(() => {
      const entries: Entry[] =
        this.#undecided === undecided && log.session === session
          ? [{ kind: "acknowledged", epoch, rescued: list }]
          : [];
      return { entries, result: undefined };
    });
    undecided.session = session;
  }

  /**
   * Calls that began in the old session are over when it runs alone, or have given up the lock and are told when they take it again;
   * those of the new one know what is condemned.
   */
  async #rejoin(join: () => Promise<void>): Promise<void> {
    const { log, blocks } = this.#deps;
    await this.#host.alone(async () => {
      this.#host.voidCalls();
      await join();
      await log.refresh();
      if (this.#undecided !== undefined) await blocks.suspend(this.#undecided.entry.epoch);
    });
  }

  #changed(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers<void>();
  }
}

const setUndecided = (value: Uint8Array | undefined): Entry => ({ kind: "metadata", changes: [[undecidedKey, value]] });

const isEmpty = (list: BlockList): boolean => ("cids" in list ? list.cids.length : list.count) === 0;

async function* filtered(cids: AsyncIterable<CID>, isMeant: (cid: CID) => boolean): AsyncGenerator<CID> {
  for await (const cid of cids) if (isMeant(cid)) yield cid;
}
