/**
 * MFS, the mutable file system of a node: a tree of directories under one root. Every state that was answered as
 * flushed survives a crash.
 *
 * Changes are made in memory, one at a time. A commit writes them to the journal or, now and then, stores the root that
 * they lead to. Calls that come while a commit is being written share the next one.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import { dagPb } from "../../formats/cid/codecs.ts";
import { BlockBatch } from "../../storage/blockstore/batch.ts";
import type { BlockService, PendingBlocks, ReadOptions } from "../../storage/blockstore/block_service.ts";
import type { Block } from "../../storage/blockstore/store.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { KeyedMutex } from "../../util/async/keyed_mutex.ts";
import { SharedLock } from "../../util/async/shared_lock.ts";
import { NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { nodeReader, type ReadBlock } from "../dag/reader.ts";
import { type Built, type CidSettings, defaultCid } from "../unixfs/build.ts";
import { buildDirectory } from "../unixfs/directory.ts";
import type { OnStored } from "./directory.ts";
import { type Folder, type FolderDeps, kindOf } from "./folder.ts";
import { GcGuard } from "./gc_guard.ts";
import { type Change, Journal } from "./journal.ts";
import { loadTree, rootLost } from "./load.ts";
import { isFull, UnstoredBlocks } from "./unstored.ts";

/** Bytes of directories that are read before the directories without changes are dropped from memory. */
const MAX_READ_BYTES = 64 * 1024 * 1024;

/** Changes in the journal before the root is stored: at most this many are replayed at a start after a crash. */
const MAX_CHANGES = 1024;
/** How often as long as directories were stored for a reader nobody else makes that happen again. */
const SETTLE_PAUSE = 4;

export interface NamespaceDeps {
  readonly blocks: BlockService;
  readonly metadata: MetadataStore;
  /** The lock that garbage collection holds exclusively. */
  readonly lock: SharedLock;
  /** Whether a directory becomes sharded when an entry is put into it. */
  readonly sharded: () => boolean;
  readonly log: NodeLog;
  /** Once it aborts, no peer is asked any more. */
  readonly noPeers?: AbortSignal;
}

export interface ChangeOptions extends ReadOptions {
  /** The change and all before it are on the disk when the call resolves. */
  readonly flush: boolean;
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

/** Ends an attempt of `withTree` at a block that is not on this machine. */
class MissingBlock extends Error {
  readonly cid: CID;

  constructor(cid: CID) {
    super(`${cid} is not on this machine`);
    this.cid = cid;
  }
}

export class Namespace implements PendingBlocks {
  readonly blocks: BlockService;
  readonly #unstored: UnstoredBlocks;
  readonly #journal: Journal;
  readonly #gcLock: SharedLock;
  readonly #sharded: () => boolean;
  readonly #log: NodeLog;
  readonly #noPeers: AbortSignal | undefined;
  /** Held exclusively by whoever walks or changes the tree. */
  readonly #treeLock = new SharedLock();
  /** Serializes writers of one file, by its path. To be acquired before `withGcGuard`, never within. */
  readonly writers = new KeyedMutex();
  /** Of the calls that are under way. */
  readonly #guards = new Set<GcGuard>();
  #root: Folder | undefined;
  /** Changes of the tree that are not on the disk yet. */
  #changes: Change[] = [];
  /** Changes that the current holder of `#treeLock` has made. */
  readonly #made: Change[] = [];
  /** Bytes of directories that were read since the tree was pruned. */
  #readBytes = 0;
  /** Blocks that were fetched for the current holder of `#treeLock`, by the text of their CIDs. */
  #fetched: ReadonlyMap<string, Uint8Array> = new Map();
  /** The journal was empty when the node was started. */
  #untouched: Promise<boolean> | undefined;
  /** When changed directories may be stored for a reader again, as `performance.now` counts. */
  #settleAt = 0;
  /** The next commit stores the root. */
  #whole = false;
  #committing: Promise<void> | undefined;
  #waiting: Promise<void> | undefined;

  constructor({ blocks, metadata, lock, sharded, log, noPeers }: NamespaceDeps) {
    this.blocks = blocks;
    this.#unstored = new UnstoredBlocks(blocks);
    this.#journal = new Journal(metadata);
    this.#gcLock = lock;
    this.#sharded = sharded;
    this.#log = log;
    this.#noPeers = noPeers;
  }

  /**
   * The roots that garbage collection must keep, including blocks on their way into the tree. The caller holds the lock
   * exclusively.
   */
  async roots(): Promise<CID[]> {
    // Changes in the journal refer to blocks that are not below the stored root. On a full disk, both are kept.
    const unwritten = await this.commit({ whole: true }).then(
      () => [],
      async (error: unknown) => {
        if (!isFull(error)) throw error;
        return [(await this.withTree({ offline: true }, (root) => this.store(root))).cid];
      },
    );
    const root = (await this.#journal.root()) ?? (await this.#emptyDirectory());
    return [root, ...unwritten, ...[...this.#guards].flatMap((guard) => [...guard.protectedCids()])];
  }

  /**
   * Gives `run` the tree for itself. Other callers must not wait for peers, so `run` never fetches: an attempt that needs a
   * block which is not on this machine ends, the block is fetched with the tree unlocked, and `run` starts again from the
   * beginning. It must therefore read all it needs before it changes anything. `guard` is that of a caller within
   * `withGcGuard`: it protects the blocks that were fetched.
   */
  async withTree<T>(options: ReadOptions, run: (root: Folder) => Promise<T>, guard?: GcGuard): Promise<T> {
    const missing: CID[] = [];
    guard?.protect(() => missing);
    const fetched = new Map<string, Uint8Array>();
    const read = this.reader({ ...options, storedOnly: true });
    for (;;) {
      const attempt = await this.#attempt(options.signal, fetched, run);
      if ("result" in attempt) return attempt.result;
      const cid = attempt.missing;
      missing.push(cid);
      const fetch = () => (this.#root === undefined ? this.#fetchRoot(cid, options) : read(cid));
      fetched.set(cid.toString(), await (guard === undefined ? fetch() : guard.withoutLock(fetch)));
    }
  }

  /** Fetches the block of the root, or one that the journal needs. @throws NodeError FILES_ROOT_LOST */
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
   * Makes a directory of this machine the root, an empty one by default; before anything else was asked of the tree.
   * Durable when it resolves.
   *
   * @throws NodeError when it is not on this machine, or no directory
   */
  async replaceRoot(given?: CID): Promise<ReplacedRoot> {
    const bytes = given && (await this.blocks.findStored(given));
    if (given !== undefined && bytes === undefined) throw new NodeError(`${given} is not in this repo`);
    if (given !== undefined && bytes !== undefined && kindOf(given, bytes) !== "directory") {
      throw new NodeError(`${given} is not a directory`);
    }
    const after = given ?? (await this.#emptyDirectory());
    await this.blocks.store.sync();
    const before = await this.#journal.root();
    const dropped = (await this.#journal.changes()).length;
    await this.#journal.keep(after);
    this.#root = undefined;
    this.#changes = [];
    return { before, after, dropped };
  }

  /** Runs once with the tree locked; gives the result, or the block for lack of which it ended. */
  async #attempt<T>(
    signal: AbortSignal | undefined,
    fetched: ReadonlyMap<string, Uint8Array>,
    run: (root: Folder) => Promise<T>,
  ): Promise<{ readonly result: T } | { readonly missing: CID }> {
    const release = await this.#treeLock.acquireExclusive(signal);
    this.#fetched = fetched;
    try {
      return { result: await run(await this.#tree()) };
    } catch (error) {
      if (error instanceof MissingBlock) return { missing: error.cid };
      throw error;
    } finally {
      // The changes of one call are journalled together or not at all.
      this.#changes.push(...this.#made.splice(0));
      release();
    }
  }

  /** Runs with garbage collection locked out, except while `run` waits in `guard.withoutLock`. */
  async withGcGuard<T>(signal: AbortSignal | undefined, run: (guard: GcGuard) => Promise<T>): Promise<T> {
    const guard = new GcGuard(this.#gcLock, signal);
    await guard.acquire();
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
    return this.withGcGuard(options.signal, async (guard) => {
      const result = await this.withTree(options, run, guard);
      await this.afterChange(options);
      return result;
    });
  }

  /** To be awaited after a change. Changes that need no flush are committed as well once they are many. */
  async afterChange({ flush }: Pick<ChangeOptions, "flush">): Promise<void> {
    if (flush || this.#changes.length >= MAX_CHANGES) await this.commit();
  }

  /**
   * Stores what has changed in a directory and below, or holds it in memory when the disk is full; it is durable after
   * `commit` only. To be called within `withTree`.
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
    // A tree that was not read yet can have changed before a crash only.
    if (this.#root?.isStored ?? (await (this.#untouched ??= this.#journal.isEmpty()))) return;
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
  readonly readLocal: ReadBlock = async (cid) => {
    const here = (await this.blocks.findStored(cid)) ?? this.#unstored.get(cid);
    const bytes = here ?? this.#fetched.get(cid.toString());
    if (bytes === undefined) throw new MissingBlock(cid);
    this.#readBytes += bytes.length;
    return bytes;
  };

  reader(options: ReadOptions): ReadBlock {
    const noPeers = this.#noPeers;
    if (noPeers === undefined) return nodeReader(this.blocks, options);
    if (noPeers.aborted) return nodeReader(this.blocks, { ...options, offline: true });
    const signal = options.signal === undefined ? noPeers : AbortSignal.any([options.signal, noPeers]);
    return nodeReader(this.blocks, { ...options, signal });
  }

  /** Resolves when all changes up to now are on the disk; with `whole`, as a stored root. */
  commit({ whole = false } = {}): Promise<void> {
    this.#whole ||= whole;
    this.#waiting ??= this.#commitAfter(this.#committing);
    return this.#waiting;
  }

  /** Writes the changes that are not flushed yet. */
  async close(): Promise<void> {
    if (this.#root !== undefined) await this.commit({ whole: true });
  }

  async #commitAfter(before: Promise<void> | undefined): Promise<void> {
    await before?.catch(() => {});
    this.#committing = this.#waiting;
    this.#waiting = undefined;
    const whole = this.#whole || this.#journal.length >= MAX_CHANGES || this.#readBytes > MAX_READ_BYTES;
    this.#whole = false;
    let taken: Change[] = [];
    const take = () => {
      taken = this.#changes;
      this.#changes = [];
      return taken;
    };
    try {
      await (whole ? this.#keepRoot(take) : this.#keepChanges(take));
    } catch (error) {
      this.#changes = [...taken, ...this.#changes];
      throw error;
    }
  }

  async #keepChanges(take: () => Change[]): Promise<void> {
    const changes = take();
    if (changes.length === 0) return;
    await this.blocks.store.sync();
    await this.#journal.add(changes);
  }

  async #keepRoot(take: () => Change[]): Promise<void> {
    const { cid } = await this.withTree({ offline: true }, async (root) => {
      const built = await this.store(root);
      await this.#unstored.write();
      take();
      return built;
    });
    const kept = await this.#journal.root();
    if (this.#journal.length === 0 && kept?.equals(cid)) return;
    await this.blocks.store.sync();
    await this.#journal.keep(cid);
  }

  async #tree(): Promise<Folder> {
    const root = this.#root ?? (await this.#load());
    this.#root = root;
    if (this.#readBytes > MAX_READ_BYTES) {
      root.prune();
      this.#readBytes = 0;
    }
    return root;
  }

  async #emptyDirectory(): Promise<CID> {
    const put = (block: Block) => this.#unstored.put([block]);
    return (await buildDirectory([], { ...defaultCid, sharded: false }, put)).cid;
  }

  /** The tree as it was stored, with the changes of the journal. */
  async #load(): Promise<Folder> {
    const deps: FolderDeps = {
      read: this.readLocal,
      sharded: this.#sharded,
      // Changes that are replayed are in the journal already.
      changed: (change) => void (this.#root !== undefined && this.#made.push(change)),
    };
    const cid = (await this.#journal.root()) ?? (await this.#emptyDirectory());
    return loadTree(cid, this.#journal, deps, this.#log);
  }
}
