/**
 * MFS, the mutable file system of a node: a tree of directories below one root. Every change whose
 * call has resolved as flushed survives a crash.
 *
 * Changes are made in memory, one at a time, and committed to the journal: by `commits.ts` if only
 * this host changes the tree, and by `rounds.ts` if several hosts do.
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
import { Journal, type NamespaceChange } from "./journal.ts";
import { rootLost } from "./load.ts";
import { type Attempt, LoadedTree, type TreeCall } from "./loaded_tree.ts";
import { type RoundOptions, Rounds } from "./rounds.ts";
import { UnflushedCalls } from "./unflushed_calls.ts";
import { isFull, UnstoredBlocks } from "./unstored.ts";

/**
 * Maximum number of changes in the journal before the root is stored. A start after a crash replays
 * at most this many.
 */
const MAX_CHANGES = 1024;
/**
 * `find` stores changed directories. After that it pauses for this multiple of the time that it
 * needed.
 */
const SETTLE_PAUSE = 4;

export interface NamespaceDeps {
  readonly blocks: BlockService;
  readonly metadata: MetadataStore;
  /** The lock that garbage collection holds exclusively. */
  readonly lock: SharedLock;
  /**
   * Whether a directory becomes sharded by a new entry, for changes without an option of their own.
   */
  readonly sharded: () => boolean;
  /** The form of the root. By default its form does not change. */
  readonly rootForm?: () => CidSettings | undefined;
  readonly log: NodeLog;
  /** Once it aborts, no peer is contacted. */
  readonly noPeers?: AbortSignal;
  /**
   * Whether other hosts use the same metadata. Every change is then committed before its call
   * resolves.
   */
  readonly shared?: boolean;
  /** With `shared`: whether no other host changes this tree. */
  readonly isOwn?: boolean;
}

export interface ChangeOptions extends ReadOptions {
  /**
   * Whether the change and all earlier changes must be on the disk when the call resolves. If
   * several hosts share a store, they always are.
   */
  readonly flush: boolean;
  /**
   * The `voids` counter of the lock of garbage collection when the blocks of the change were put.
   * The change fails if they may have been removed since.
   */
  readonly voids?: number | undefined;
  readonly sharding?: NamespaceSharding | undefined;
}

/** The result of `replaceRoot`. */
export interface ReplacedRoot {
  /** Undefined in a repo whose files were never changed. */
  readonly before: CID | undefined;
  readonly after: CID;
  /** Number of changes that were not part of the old root yet. They are lost. */
  readonly dropped: number;
}

/** Timeout in milliseconds for fetching the block of the root from peers. */
const ROOT_FETCH_MS = 10_000;

export class Namespace implements PendingBlocks {
  readonly blocks: BlockService;
  /** Whether other hosts change the tree, too. */
  readonly isShared: boolean;
  readonly #unstored: UnstoredBlocks;
  readonly #journal: Journal;
  readonly #gcLock: SharedLock;
  readonly #sharded: () => boolean;
  readonly #log: NodeLog;
  readonly #noPeers: AbortSignal | undefined;
  /** Held exclusively by every call that walks or changes the tree. */
  readonly #treeLock = new SharedLock();
  /**
   * Serializes writers of one file, by its path. To be acquired before `withGcGuard`, never within.
   */
  readonly writers = new KeyedMutex();
  readonly unflushed = new UnflushedCalls();
  /** The guards of running calls. */
  readonly #guards = new Set<GcGuard>();
  readonly #tree: LoadedTree;
  readonly #commits: Commits;
  /** Defined if several hosts change the tree. */
  readonly #rounds: Rounds | undefined;
  /** Whether the journal was empty when the node was started. */
  #untouched: Promise<boolean> | undefined;
  /**
   * The time, on the clock of `performance.now`, from which changed directories may be stored for
   * `find` again.
   */
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
   * Returns the roots that garbage collection must spare, including blocks on their way into the
   * tree. The caller holds the lock exclusively.
   */
  async roots(): Promise<CID[]> {
    if (this.#rounds !== undefined) return this.#sharedRoots();
    // Changes in the journal refer to blocks that are not below the stored root. If the disk is
    // full, both must be spared.
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
   * Returns the root, the links in the journals of all hosts, and the tree of this host, whose
   * directories may be stored here only.
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
   * Calls `run` with exclusive access to the tree. Other callers must not wait for peers, so `run`
   * never fetches blocks. If it needs a block that is not on this machine, the attempt ends, the
   * block is fetched with the tree unlocked, and `run` starts again from the beginning. So it must
   * read everything that it needs before it changes anything. Within `withGcGuard`, pass its
   * `guard`, which then protects the fetched blocks.
   */
  async withTree<T>(
    options: ReadOptions & RoundOptions & Partial<ChangeOptions>,
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
   * Fetches the block of the root, or a block that the journal needs. @throws NodeError
   * FILES_ROOT_LOST
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
   * Makes a directory of this machine the root; without `given`, an empty one. To be called before
   * the tree is used. Durable when it resolves.
   *
   * @throws NodeError when it is not on this machine, or not a directory
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

  /**
   * Runs a call once with the tree locked. Returns its result, or the missing block that ended it.
   */
  async #attempt<T>(options: RoundOptions, call: TreeCall<T>): Promise<Attempt<T>> {
    const rounds = this.#rounds;
    if (rounds !== undefined) return rounds.call((trace) => this.#tree.attempt(call, trace), options);
    const release = await this.#treeLock.acquireExclusive(options.signal);
    const changes: NamespaceChange[] = [];
    try {
      return await this.#tree.attempt(call, { changes });
    } finally {
      // The changes of one call are written to the journal together or not at all.
      this.#commits.add(changes);
      release();
    }
  }

  /**
   * Runs without concurrent garbage collection, except while `run` waits in `guard.withoutLock`.
   */
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

  /** Runs one change like `withTree`, and commits it if requested. */
  change<T>(options: ChangeOptions, run: (root: Folder) => Promise<T>): Promise<T> {
    const made = async (guard: GcGuard) => {
      const result = await this.withTree(options, run, guard);
      await this.afterChange(options);
      return result;
    };
    return this.withGcGuard(options.signal, made, options.voids);
  }

  /** To be awaited after a change. Many changes are committed even without `flush`. */
  async afterChange({ flush }: Pick<ChangeOptions, "flush">): Promise<void> {
    if (this.#rounds === undefined) {
      if (flush || this.#commits.pending >= MAX_CHANGES) await this.commit();
    } else if (this.#isLarge) {
      // The change itself is committed. If the root cannot be stored, the journal stays long, but
      // the call does not fail.
      await this.commit({ whole: true }).catch((error: Error) =>
        this.#log.write("mfs", "warn", `cannot store the root: ${error.message}`),
      );
    }
  }

  /** Whether the root should be stored. */
  get #isLarge(): boolean {
    return this.#journal.length >= MAX_CHANGES || this.#tree.isLarge;
  }

  /**
   * Stores the changes of a directory and below. If the disk is full, the blocks stay in memory.
   * They are durable only after `commit`. To be called within `withTree`.
   */
  async store(folder: Folder): Promise<Built> {
    const batch = new BlockBatch(this.#unstored);
    const settled: OnStored[] = [];
    const built = await folder.write(batch.add, settled);
    await batch.flush();
    for (const settle of settled) settle();
    return built;
  }

  /** Stores the blocks that were only in memory. @throws NodeError STORE_FULL */
  write(): Promise<void> {
    return this.#unstored.write();
  }

  /** Stores all changed directories. Does nothing if the root cannot be read. */
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

  /** A tree that was not read yet has changes only if the process crashed before. */
  async #isSettled(): Promise<boolean> {
    return this.#tree.root?.isStored ?? (this.#untouched ??= this.#journal.isEmpty());
  }

  async find(cid: CID): Promise<Uint8Array | undefined> {
    if (cid.code !== dagPb) return undefined;
    await this.settle();
    return this.#unstored.get(cid) ?? this.blocks.findStored(cid);
  }

  /** Stores directories with these names, each within the one before. Returns the outermost. */
  async newDirectories(names: readonly string[], settings: CidSettings): Promise<Built> {
    const batch = new BlockBatch(this.blocks);
    const form = { ...settings, sharded: this.#sharded() };
    let built = await buildDirectory([], form, batch.add);
    for (const name of names.toReversed()) built = await buildDirectory([{ name, ...built }], form, batch.add);
    await batch.flush();
    return built;
  }

  /** Reads a block of this machine, within `withTree`. A missing block ends the attempt. */
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

  /** Resolves when all changes up to now are on the disk, with `whole` as a stored root. */
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

  /**
   * Stores the root. This host adds nothing to the journal meanwhile, and changes of other hosts
   * stay in it.
   */
  async #keepShared(): Promise<void> {
    await this.withTree({ offline: true, alone: true }, async (root) => {
      const { cid } = await this.store(root);
      await this.blocks.store.sync();
      if (this.#journal.length > 0 || !(await this.#journal.root())?.equals(cid)) await this.#journal.keep(cid);
    });
  }
}
