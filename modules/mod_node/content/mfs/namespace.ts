/**
 * MFS, the mutable file system of a node: a tree of directories under one root. Every state that
 * was answered as flushed survives a crash.
 *
 * Changes are made in memory, one at a time, and committed to the journal: by `commits.ts` where
 * this host alone has the tree, and by `rounds.ts` where several do.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import { dagPb } from "../../formats/cid/codecs.ts";
import { BlockBatch } from "../../storage/blockstore/batch.ts";
import type { BlockService, PendingBlocks, ReadOptions } from "../../storage/blockstore/block_service.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { KeyedMutex } from "../../util/async/keyed_mutex.ts";
import { SharedLock } from "../../util/async/shared_lock.ts";
import { failure, NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { nodeReader, type ReadBlock } from "../dag/reader.ts";
import type { Built, CidSettings } from "../unixfs/build.ts";
import { buildDirectory } from "../unixfs/directory.ts";
import { Commits } from "./commits.ts";
import type { OnStored } from "./directory.ts";
import { type Folder, kindOf, type NamespaceSharding } from "./folder.ts";
import { GcGuard } from "./gc_guard.ts";
import { type Change, Journal } from "./journal.ts";
import { rootLost } from "./load.ts";
import { type Attempt, LoadedTree, type TreeCall } from "./loaded_tree.ts";
import { type CallOptions, Rounds } from "./rounds.ts";
import { UnflushedCalls } from "./unflushed_calls.ts";
import { isFull, UnstoredBlocks } from "./unstored.ts";

/**
 * Changes in the journal before the root is stored: at most this many are replayed at a start after
 * a crash.
 */
const MAX_CHANGES = 1024;
/**
 * How often as long as directories were stored for a reader nobody else makes that happen again.
 */
const SETTLE_PAUSE = 4;

export interface NamespaceDeps {
  readonly blocks: BlockService;
  readonly metadata: MetadataStore;
  /** The lock that garbage collection holds exclusively. */
  readonly lock: SharedLock;
  /**
   * Whether a directory becomes sharded when an entry is put into it, for changes that do not say
   * it.
   */
  readonly sharded: () => boolean;
  /** The form of the root; by default it keeps the one that it has. */
  readonly rootForm?: () => CidSettings | undefined;
  readonly log: NodeLog;
  /** Once it aborts, no peer is asked any more. */
  readonly noPeers?: AbortSignal;
  /** Other hosts have the same metadata: every change is committed before its call resolves. */
  readonly shared?: boolean;
  /** With `shared`: of these, no other one changes this tree. */
  readonly isOwn?: boolean;
}

export interface ChangeOptions extends ReadOptions {
  /**
   * The change and all before it are on the disk when the call resolves; so they always are where
   * several hosts share a store.
   */
  readonly flush: boolean;
  /**
   * Of the lock of garbage collection, when what the change links was put: it fails when that may
   * have gone since.
   */
  readonly voids?: number | undefined;
  readonly sharding?: NamespaceSharding | undefined;
}

/** What `replaceRoot` did. */
export interface ReplacedRoot {
  /** Undefined in a repo whose files were never changed. */
  readonly before: CID | undefined;
  readonly after: CID;
  /** Changes that were not part of the old root yet, and are gone. */
  readonly dropped: number;
}

/** How long the block of the root is looked for among peers, in milliseconds. */
const ROOT_FETCH_MS = 10_000;

export class Namespace implements PendingBlocks {
  readonly blocks: BlockService;
  /** Other hosts change the tree as well. */
  readonly isShared: boolean;
  readonly #unstored: UnstoredBlocks;
  readonly #journal: Journal;
  readonly #gcLock: SharedLock;
  readonly #sharded: () => boolean;
  readonly #log: NodeLog;
  readonly #noPeers: AbortSignal | undefined;
  /** Held exclusively by whoever walks or changes the tree. */
  readonly #treeLock = new SharedLock();
  /**
   * Serializes writers of one file, by its path. To be acquired before `withGcGuard`, never within.
   */
  readonly writers = new KeyedMutex();
  readonly unflushed = new UnflushedCalls();
  /** Of the calls that are under way. */
  readonly #guards = new Set<GcGuard>();
  readonly #tree: LoadedTree;
  readonly #commits: Commits;
  /** Where several hosts have the tree. */
  readonly #rounds: Rounds | undefined;
  /** The journal was empty when the node was started. */
  #untouched: Promise<boolean> | undefined;
  /** When changed directories may be stored for a reader again, as `performance.now` counts. */
  #settleAt = 0;
  #keeping: Promise<void> | undefined;

  constructor(deps: NamespaceDeps) {
    const { blocks, metadata, lock, sharded, rootForm, log, noPeers, shared = false, isOwn = false } = deps;
    this.blocks = blocks;
    this.isShared = shared;
    this.#unstored = new UnstoredBlocks(blocks);
    this.#journal = new Journal(metadata);
    this.#gcLock = lock;
    this.#sharded = sharded;
    this.#log = log;
    this.#noPeers = noPeers;
    this.#tree = new LoadedTree({ blocks, unstored: this.#unstored, journal: this.#journal, sharded, rootForm, log });
    const journal = this.#journal;
    const sync = () => blocks.store.sync();
    const storeRoot = (stored: () => void) => this.#storeRoot(stored);
    this.#commits = new Commits({ journal, storeRoot, sync, isLarge: () => this.#isLarge });
    const rounds = { journal, sync, tree: this.#tree, lock: this.#treeLock, gcLock: lock, isOwn };
    if (shared) this.#rounds = new Rounds(rounds);
  }

  /**
   * The roots that garbage collection must keep, including blocks on their way into the tree. The
   * caller holds the lock exclusively.
   */
  async roots(): Promise<CID[]> {
    if (this.#rounds !== undefined) return this.#sharedRoots();
    // Changes in the journal refer to blocks that are not below the stored root. On a full disk,
    // both are kept.
    const unwritten = await this.commit({ whole: true }).then(
      () => [],
      async (error: unknown) => {
        if (!isFull(error)) throw error;
        return [(await this.withTree({ offline: true }, (root) => this.store(root))).cid];
      },
    );
    const root = (await this.#journal.root()) ?? (await this.#tree.emptyDirectory());
    return [root, ...unwritten, ...this.#guarded()];
  }

  /**
   * The root, what all hosts have put into the journal, and the tree here, whose directories may be
   * stored on this host alone.
   */
  async #sharedRoots(): Promise<CID[]> {
    const { cid } = await this.withTree({ offline: true }, (root) => this.store(root));
    const { root = cid, changes } = await this.#journal.state();
    return [root, cid, ...changes.flatMap((change) => ("put" in change ? [change.put.cid] : [])), ...this.#guarded()];
  }

  #guarded(): CID[] {
    return [...this.#guards].flatMap((guard) => [...guard.protectedCids()]);
  }

  /**
   * Gives `run` the tree for itself. Other callers must not wait for peers, so `run` never fetches:
   * an attempt that needs a block which is not on this machine ends, the block is fetched with the
   * tree unlocked, and `run` starts again from the beginning. It must therefore read all it needs
   * before it changes anything. `guard` is that of a caller within `withGcGuard`: it protects the
   * blocks that were fetched.
   */
  async withTree<T>(
    options: ReadOptions & CallOptions & Partial<ChangeOptions>,
    run: (root: Folder) => Promise<T>,
    guard?: GcGuard,
  ): Promise<T> {
    const missing: CID[] = [];
    guard?.protect(() => missing);
    const fetched = new Map<string, Uint8Array>();
    const read = this.reader({ ...options, storedOnly: true });
    for (;;) {
      const attempt = await this.#attempt(options, { run, fetched, sharding: options.sharding });
      if ("result" in attempt) return attempt.result;
      const cid = attempt.missing;
      missing.push(cid);
      const fetch = () => (this.#tree.root === undefined ? this.#fetchRoot(cid, options) : read(cid));
      fetched.set(cid.toString(), await (guard === undefined ? fetch() : guard.withoutLock(fetch)));
    }
  }

  /**
   * Fetches the block of the root, or one that the journal needs. @throws NodeError FILES_ROOT_LOST
   */
  async #fetchRoot(cid: CID, options: ReadOptions): Promise<Uint8Array> {
    const enough = AbortSignal.timeout(ROOT_FETCH_MS);
    const signal = options.signal === undefined ? enough : AbortSignal.any([options.signal, enough]);
    try {
      return await this.reader({ ...options, signal, storedOnly: true })(cid);
    } catch (error) {
      options.signal?.throwIfAborted();
      throw rootLost(cid, error);
    }
  }

  /**
   * Makes a directory of this machine the root, an empty one by default; before anything else was
   * asked of the tree. Durable when it resolves.
   *
   * @throws NodeError when it is not on this machine, or no directory
   */
  async replaceRoot(given?: CID): Promise<ReplacedRoot> {
    const bytes = given && (await this.blocks.findStored(given));
    if (given !== undefined && bytes === undefined)
      throw failure("BLOCK_NOT_LOCAL", { reason: `${given} is not in this repo` });
    if (given !== undefined && bytes !== undefined && kindOf(given, bytes) !== "directory") {
      throw failure("NOT_A_DIRECTORY", { path: String(given) });
    }
    const after = given ?? (await this.#tree.emptyDirectory());
    await this.blocks.store.sync();
    const before = await this.#journal.root();
    const dropped = (await this.#journal.state()).changes.length;
    await this.#journal.replace(after);
    this.#tree.drop();
    this.#commits.drop();
    return { before, after, dropped };
  }

  /** Runs once with the tree locked; gives the result, or the block for lack of which it ended. */
  async #attempt<T>(options: CallOptions, call: TreeCall<T>): Promise<Attempt<T>> {
    const rounds = this.#rounds;
    if (rounds !== undefined) return rounds.call((trace) => this.#tree.attempt(call, trace), options);
    const release = await this.#treeLock.acquireExclusive(options.signal);
    const changes: Change[] = [];
    try {
      return await this.#tree.attempt(call, { changes });
    } finally {
      // The changes of one call are journalled together or not at all.
      this.#commits.add(changes);
      release();
    }
  }

  /** Runs with garbage collection locked out, except while `run` waits in `guard.withoutLock`. */
  async withGcGuard<T>(
    signal: AbortSignal | undefined,
    run: (guard: GcGuard) => Promise<T>,
    voids?: number,
  ): Promise<T> {
    const guard = new GcGuard(this.#gcLock, signal);
    await guard.acquire(voids);
    this.#guards.add(guard);
    try {
      return await run(guard);
    } finally {
      this.#guards.delete(guard);
      guard.release();
    }
  }

  /** Runs one change as `withTree` does, and commits it if asked to. */
  change<T>(options: ChangeOptions, run: (root: Folder) => Promise<T>): Promise<T> {
    const made = async (guard: GcGuard) => {
      const result = await this.withTree(options, run, guard);
      await this.afterChange(options);
      return result;
    };
    return this.withGcGuard(options.signal, made, options.voids);
  }

  /**
   * To be awaited after a change. Changes that need no flush are committed as well once they are
   * many.
   */
  async afterChange({ flush }: Pick<ChangeOptions, "flush">): Promise<void> {
    if (this.#rounds === undefined) {
      if (flush || this.#commits.pending >= MAX_CHANGES) await this.commit();
    } else if (this.#isLarge) {
      // The change is committed: that the journal gets no shorter is no failure of its caller.
      await this.commit({ whole: true }).catch((error: Error) =>
        this.#log.write("mfs", "warn", `the root is not stored: ${error.message}`),
      );
    }
  }

  /** It is time to store the root. */
  get #isLarge(): boolean {
    return this.#journal.length >= MAX_CHANGES || this.#tree.isLarge;
  }

  /**
   * Stores what has changed in a directory and below, or holds it in memory when the disk is full;
   * it is durable after `commit` only. To be called within `withTree`.
   */
  async store(folder: Folder): Promise<Built> {
    const batch = new BlockBatch(this.#unstored);
    const settled: OnStored[] = [];
    const built = await folder.write(batch.add, settled);
    await batch.flush();
    for (const settle of settled) settle();
    return built;
  }

  /** Stores what was held in memory. @throws NodeError STORE_FULL */
  write(): Promise<void> {
    return this.#unstored.write();
  }

  /** Stores all directories that have changed; those of a root that cannot be read are left. */
  async settle(): Promise<void> {
    if (this.#rounds === undefined && (await this.#isSettled())) return;
    const wait = this.#settleAt - performance.now();
    if (wait > 0) await sleep(wait);
    try {
      await this.withTree({ offline: true }, async (root) => {
        if (root.isStored) return;
        const began = performance.now();
        await this.store(root);
        this.#settleAt = performance.now() + (performance.now() - began) * SETTLE_PAUSE;
      });
    } catch (error) {
      if (!(error instanceof NodeError)) throw error;
    }
  }

  /** A tree that was not read yet can have changed before a crash only. */
  async #isSettled(): Promise<boolean> {
    return this.#tree.root?.isStored ?? (this.#untouched ??= this.#journal.isEmpty());
  }

  async find(cid: CID): Promise<Uint8Array | undefined> {
    if (cid.code !== dagPb) return undefined;
    await this.settle();
    return this.#unstored.get(cid) ?? this.blocks.findStored(cid);
  }

  /** Stores a directory that holds directories of these names, each within the one before. */
  async newDirectories(names: readonly string[], settings: CidSettings): Promise<Built> {
    const batch = new BlockBatch(this.blocks);
    const form = { ...settings, sharded: this.#sharded() };
    let built = await buildDirectory([], form, batch.add);
    for (const name of names.toReversed()) built = await buildDirectory([{ name, ...built }], form, batch.add);
    await batch.flush();
    return built;
  }

  /** Reads a block of this machine, within `withTree`: a missing one ends the attempt. */
  get readLocal(): ReadBlock {
    return this.#tree.readLocal;
  }

  reader(options: ReadOptions): ReadBlock {
    const noPeers = this.#noPeers;
    if (noPeers === undefined) return nodeReader(this.blocks, options);
    if (noPeers.aborted) return nodeReader(this.blocks, { ...options, offline: true });
    const signal = options.signal === undefined ? noPeers : AbortSignal.any([options.signal, noPeers]);
    return nodeReader(this.blocks, { ...options, signal });
  }

  /** Resolves when all changes up to now are on the disk; with `whole`, as a stored root. */
  commit({ whole = false } = {}): Promise<void> {
    if (this.#rounds === undefined) return this.#commits.commit(whole);
    if (!whole) return Promise.resolve();
    this.#keeping ??= this.#keepShared().finally(() => {
      this.#keeping = undefined;
    });
    return this.#keeping;
  }

  /** Writes the changes that are not flushed yet. */
  async close(): Promise<void> {
    if (this.#tree.root !== undefined && this.#rounds === undefined) await this.commit({ whole: true });
  }

  async #storeRoot(stored: () => void): Promise<CID> {
    return this.withTree({ offline: true }, async (root) => {
      const { cid } = await this.store(root);
      await this.#unstored.write();
      stored();
      return cid;
    });
  }

  /** Nothing is added to the journal by this host meanwhile, and what others add stays in it. */
  async #keepShared(): Promise<void> {
    await this.withTree({ offline: true, alone: true }, async (root) => {
      const { cid } = await this.store(root);
      await this.blocks.store.sync();
      if (this.#journal.length > 0 || !(await this.#journal.root())?.equals(cid)) await this.#journal.keep(cid);
    });
  }
}
