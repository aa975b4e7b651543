/**
 * Garbage collection of hosts that share a store. One host collects and asks all others which
 * blocks their running calls refer to. No step depends on durations or clocks.
 */
import type { CID } from "multiformats/cid";
import { CidSet } from "../../../formats/cid/set.ts";
import { batches } from "../../../util/async/batches.ts";
import { failure } from "../../../util/errors.ts";
import { RetainedBlocks } from "../../blockstore/retained_blocks.ts";
import type { MetadataStore } from "../../metadata/store.ts";
import { decodeEntries, encodeEntries } from "../entries.ts";
import type { Applier, BlockList, Commit, Draft, Entry, Position, SharedLog, StoreLock } from "../log.ts";
import type { CollectionEnd } from "../metrics.ts";
import type { CondemnableBlocks } from "./blocks.ts";
import { pause } from "./pause.ts";

/** Reads a block even when it is condemned; undefined when it is not stored. */
export type FindBlock = CondemnableBlocks["find"];

export interface CollectionsDeps {
  readonly log: SharedLog;
  readonly metadata: MetadataStore;
  readonly blocks: CondemnableBlocks;
  /** Whether a key of the metadata names roots. */
  readonly isRoot: (key: string) => boolean;
  /**
   * Milliseconds between checks of state that sends no events, and milliseconds before a collection
   * without a leader is ended.
   */
  readonly pollMs?: number;
  readonly settleMs?: number;
  /**
   * Milliseconds without any response of the remaining hosts, after which a collection is given up.
   */
  readonly responseMs?: number | undefined;
}

export interface MarkOptions {
  readonly signal?: AbortSignal | undefined;
  /** Whether to mark only blocks that pins retain. */
  readonly pinned?: boolean;
}

/** The roots and the running calls of a host. */
export interface CollectingHost {
  /**
   * Runs `run` with the local garbage collection lock, while no call of this host adds blocks or
   * begins to refer to stored ones.
   */
  readonly alone: <T>(run: () => Promise<T>) => Promise<T>;
  /**
   * Called within `alone`. Calls that have released the lock for a while fail with SESSION_LOST
   * when they take it again.
   */
  readonly voidCalls: () => void;
  /**
   * Adds the blocks that committed roots retain; may be called several times with the same
   * collection of blocks.
   * @throws NodeError when a root cannot be walked
   */
  readonly mark: (retained: RetainedBlocks, find: FindBlock, options: MarkOptions) => Promise<void>;
  /** Yields the stored blocks that running calls refer to. */
  readonly guarded: (find: FindBlock) => AsyncIterable<CID>;
}

/** Stands for the host until it serves calls. */
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
  /** Called for each block after its removal. */
  readonly onRemoved?: ((removed: CID) => void) | undefined;
}

type Condemned = Extract<Entry, { kind: "condemned" }>;

/** A collection that has condemned blocks and is not decided yet. */
interface Undecided {
  readonly entry: Condemned;
  /** Rescued blocks by session. */
  readonly acknowledged: Map<number, BlockList>;
  /** The session in which this host has acknowledged the collection. */
  session: number | undefined;
}

const lockName = "gc";
/** Metadata key of the `condemned` entry until the decision, for hosts that start in between. */
const undecidedKey = "gc/undecided";
const POLL_MS = 1000;
const SETTLE_MS = 15_000;
/**
 * Longer than a call delays a collection: writers yield to it, and metadata is written within
 * seconds.
 */
const RESPONSE_MS = 5 * 60_000;
const BATCH = 512;

export class Collections implements Applier {
  readonly position = undefined;
  readonly #deps: CollectionsDeps;
  #host = idle;
  /** A caller of `remove` has the local lock and waits for this collection. */
  #isLocked = false;
  #undecided: Undecided | undefined;
  /** Whether a root was written since this was last set to false. */
  #hasNewRoots = false;
  #resets = 0;
  #change = Promise.withResolvers<void>();
  /** The running acknowledgement and its follow-up. */
  #task: Promise<void> | undefined;
  readonly #closing = new AbortController();
  /** The last collection that has ended since this object was created. */
  last: CollectionEnd | undefined;

  /** Must be created before the log is read. */
  constructor(deps: CollectionsDeps) {
    this.#deps = deps;
    deps.log.follow(this);
    deps.log.onSessionLost((join) => this.#rejoin(join));
  }

  /** Starts serving: from now on, this host has calls. */
  serve(host: CollectingHost): void {
    this.#host = host;
  }

  /**
   * Resumes an undecided collection; must be called before calls are served.
   * @throws NodeError STORE_UNAVAILABLE
   */
  async start(): Promise<void> {
    const { log, metadata, blocks } = this.#deps;
    await log.refresh();
    const stored = await metadata.get(undecidedKey);
    const entries = stored === undefined ? [] : decodeEntries(Buffer.from(stored));
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
   * Removes blocks that neither roots nor running calls on any host refer to. Waits while another
   * host collects.
   *
   * @throws NodeError STORE_UNAVAILABLE, SESSION_LOST, LOCK_LOST, and errors of `mark`; nothing is
   * removed then
   */
  async collect({ signal, onRemoved }: CollectOptions = {}): Promise<{ readonly removed: number }> {
    const { blocks } = this.#deps;
    for (;;) {
      const change = this.#change.promise;
      const removed = await this.#lead({ signal, onRemoved }, async (upTo, retained) => {
        async function* garbage() {
          for await (const cid of blocks.stored(upTo)) {
            signal?.throwIfAborted();
            if (!(await retained.keeps(cid, blocks))) yield cid;
          }
        }
        return garbage();
      });
      if (removed !== undefined) return { removed };
      await this.#pause(change, signal);
    }
  }

  /**
   * Removes these blocks, except those that pins or running calls on other hosts retain. The caller
   * has the local garbage collection lock, so this does not wait for other collections.
   * @throws NodeError COLLECTING while another host collects
   */
  async remove(cids: readonly CID[]): Promise<void> {
    this.#isLocked = true;
    try {
      const { blocks } = this.#deps;
      const done = await this.#lead({ pinned: true }, async (_upTo, retained) =>
        filtered(cids, async (cid) => !(await retained.keeps(cid, blocks))),
      );
      if (done === undefined) throw failure("COLLECTING");
    } finally {
      this.#isLocked = false;
    }
  }

  /**
   * Runs `run` while no host removes a block. Other collections wait, and `block/rm` is refused.
   * Waits while another host collects.
   *
   * @throws errors of `run`; NodeError STORE_UNAVAILABLE, SESSION_LOST; LOCK_LOST when blocks may
   * have been removed
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

  /**
   * Leads a collection and resolves with the number of removed blocks; undefined when another host
   * has the lock.
   */
  async #lead(
    options: CollectOptions & MarkOptions,
    choose: (upTo: Position, retained: RetainedBlocks) => Promise<AsyncIterable<CID> | Iterable<CID>>,
  ): Promise<number | undefined> {
    const { log, blocks } = this.#deps;
    const led = await log.withLock(lockName, async (lock) => {
      await this.#settle(lock);
      await log.refresh();
      const upTo = log.applied;
      const retained = new RetainedBlocks();
      this.#hasNewRoots = false;
      await this.#host.mark(retained, blocks.find, options);
      const list = await blocks.writeList(await choose(upTo, retained));
      if (isEmpty(list)) {
        this.last = { at: Date.now(), removed: 0 };
        return 0;
      }
      return await this.#remove({ kind: "condemned", epoch: lock.fence, upTo, list }, retained, lock, options);
    });
    return led?.result;
  }

  async #remove(
    entry: Condemned,
    retained: RetainedBlocks,
    lock: StoreLock,
    options: CollectOptions & MarkOptions,
  ): Promise<number> {
    const { signal, onRemoved } = options;
    const { log, blocks } = this.#deps;
    const resets = this.#resets;
    const rescued = new CidSet();
    // The decision about a form depends on the other stored forms, so it is made while all of them
    // are still stored.
    const isSpared = async (cid: CID) => {
      if (!rescued.has(cid) && (await retained.keeps(cid, blocks))) rescued.add(cid);
      return rescued.has(cid);
    };
    await log.commit(() => ({ entries: [entry, setUndecided(encodeEntries([entry]))], result: undefined }), lock);
    try {
      const participants = new Set(await log.sessions());
      let left = participants.size;
      let since = performance.now();
      for (;;) {
        const undecided = this.#undecided;
        if (undecided?.entry.epoch !== entry.epoch || resets !== this.#resets)
          throw new Error("the copy of the log was reset during the collection");
        const change = this.#change.promise;
        const missing = (await log.sessions()).filter((id) => participants.has(id) && !undecided.acknowledged.has(id));
        if (missing.length === 0) break;
        if (missing.length < left) {
          left = missing.length;
          since = performance.now();
        }
        await this.#requireResponse(missing, since);
        await this.#pause(change, lock.signal, signal);
      }
      // Applies the writes of sessions that have ended by now, and everything before the
      // acknowledgements.
      await log.refresh();
      if (this.#hasNewRoots) await this.#host.mark(retained, blocks.find, options);
      for (const list of this.#undecided?.acknowledged.values() ?? []) {
        for await (const cid of blocks.readList(list)) rescued.add(cid);
      }
      const back = await blocks.writeList(filtered(blocks.readList(entry.list), isSpared));
      await log.commit(() => this.#decision(entry, back), lock);
    } catch (error) {
      // If this host has lost the lock, another host settles the collection.
      await this.#settle(lock).catch(() => {});
      throw error;
    }
    let removed = 0;
    for await (const cid of blocks.readList(entry.list)) {
      if (rescued.has(cid)) continue;
      removed += 1;
      onRemoved?.(cid);
    }
    this.last = { at: Date.now(), removed };
    return removed;
  }

  /**
   * Makes sure that a host with a valid lease that never responds does not block collections
   * forever.
   * @throws NodeError COLLECTION_UNANSWERED
   */
  async #requireResponse(missing: readonly number[], since: number): Promise<void> {
    const { log, responseMs = RESPONSE_MS } = this.#deps;
    if (performance.now() - since < responseMs) return;
    const hosts = (await Promise.all(missing.map((session) => log.hostOf(session)))).join(", ");
    throw failure("COLLECTION_UNANSWERED", { seconds: Math.round(responseMs / 1000), hosts });
  }

  #decision({ epoch }: Condemned, rescued: BlockList): Draft<void> {
    if (this.#undecided?.entry.epoch !== epoch) throw new Error("the collection was ended by another host");
    return { entries: [{ kind: "removed", epoch, rescued }, setUndecided(undefined)], result: undefined };
  }

  /** Ends the collection of a host that is gone, without removing anything. */
  async #settle(lock: StoreLock): Promise<void> {
    await this.#deps.log.refresh();
    const undecided = this.#undecided;
    if (undecided === undefined) return;
    await this.#deps.log.commit(() => this.#decision(undecided.entry, undecided.entry.list), lock);
  }

  #begin(entry: Condemned): void {
    const undecided: Undecided = { entry, acknowledged: new Map(), session: undefined };
    this.#undecided = undecided;
    // Waits until the current entries are applied, because one of them may decide the collection.
    const before = this.#task;
    const task = (async () => {
      await before;
      await this.#follow(undecided);
    })();
    this.#task = task;
    this.#changed();
  }

  /**
   * Acknowledges a collection, again in each new session, until it is decided. Ends a collection
   * that has no leader.
   */
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
        // The store is unreachable or the session is lost; the next iteration tries again.
      }
      await this.#pause(change).catch(() => {});
    }
  }

  /**
   * Waits until the state changes or the next check is due.
   * @throws the reason of a signal, or the error of closing
   */
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
    await (this.#isLocked ? suspend() : alone(suspend));
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
   * Joins a new session. When `alone` runs, calls of the old session have ended, or have released
   * the lock and will fail when they take it again. Calls of the new session know which blocks are
   * condemned.
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

async function* filtered(
  cids: AsyncIterable<CID> | Iterable<CID>,
  isMeant: (cid: CID) => boolean | Promise<boolean>,
): AsyncGenerator<CID> {
  for await (const cid of cids) if (await isMeant(cid)) yield cid;
}
