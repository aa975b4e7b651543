/**
 * The mutable namespace (storage section 7): a tree of directories under one root, of which every state that was
 * answered as flushed survives a crash.
 *
 * Changes are made in memory, one at a time. A commit writes them down, or now and then the root that they make; the
 * calls that come while one is on its way to the disk share the next.
 */
import type { CID } from "multiformats/cid";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { BlockBatch } from "../../storage/blockstore/batch.ts";
import type { BlockService, ReadOptions } from "../../storage/blockstore/block_service.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { KeyedMutex } from "../../util/async/keyed_mutex.ts";
import { SharedLock } from "../../util/async/shared_lock.ts";
import { NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { nodeReader, type ReadBlock } from "../dag/reader.ts";
import { type Built, type CidSettings, defaultCid } from "../unixfs/build.ts";
import { buildDirectory } from "../unixfs/directory.ts";
import type { OnStored } from "./directory.ts";
import { Folder, type FolderDeps } from "./folder.ts";
import { GcGuard } from "./gc_guard.ts";
import { type Change, Journal } from "./journal.ts";
import { lookupFolder } from "./lookup.ts";

/** Bytes of directories that are read before those without changes are let go. */
const MAX_READ_BYTES = 64 * 1024 * 1024;

/** Changes that are kept before the root follows: so many are made again at a start after a crash. */
const MAX_CHANGES = 1024;

export interface NamespaceDeps {
  readonly blocks: BlockService;
  readonly metadata: MetadataStore;
  /** Garbage collection holds it exclusively. */
  readonly lock: SharedLock;
  /** Whether directories that entries are put into become sharded. */
  readonly sharded: () => boolean;
  readonly log: NodeLog;
  /** When it aborts, no peer is asked any more. */
  readonly noPeers?: AbortSignal;
}

export interface ChangeOptions extends ReadOptions {
  /** The change and all before it are on the disk when the call resolves. */
  readonly flush: boolean;
}

/** A block that is not on this machine. */
class Absent extends Error {
  readonly cid: CID;

  constructor(cid: CID) {
    super(`${cid} is not here`);
    this.cid = cid;
  }
}

export class Namespace {
  readonly blocks: BlockService;
  readonly #journal: Journal;
  readonly #gcLock: SharedLock;
  readonly #sharded: () => boolean;
  readonly #log: NodeLog;
  readonly #noPeers: AbortSignal | undefined;
  /** Whoever walks or changes the tree. */
  readonly #treeLock = new SharedLock();
  /** Turns of those who write a file, by its path. They are taken before `hold`, never within. */
  readonly writers = new KeyedMutex();
  /** Those of who keeps collection out. */
  readonly #guards = new Set<GcGuard>();
  #root: Folder | undefined;
  /** Changes that are in the tree and not on the disk. */
  #changes: Change[] = [];
  /** Those of who has the turn. */
  readonly #made: Change[] = [];
  #readBytes = 0;
  /** Blocks that were fetched for who has the turn, by the text of their CIDs. */
  #fetched: ReadonlyMap<string, Uint8Array> = new Map();
  /** The next commit keeps the root. */
  #whole = false;
  #committing: Promise<void> | undefined;
  #waiting: Promise<void> | undefined;

  constructor({ blocks, metadata, lock, sharded, log, noPeers }: NamespaceDeps) {
    this.blocks = blocks;
    this.#journal = new Journal(metadata);
    this.#gcLock = lock;
    this.#sharded = sharded;
    this.#log = log;
    this.#noPeers = noPeers;
  }

  /** What garbage collection has to keep, as far as it is here, on its way into the tree too. To be asked by who holds the lock for itself. */
  async roots(): Promise<CID[]> {
    // What is kept as changes would lead to blocks that no root leads to.
    await this.commit({ whole: true });
    const root = (await this.#journal.root()) ?? (await emptyDirectory(this.blocks, defaultCid)).cid;
    return [root, ...[...this.#guards].flatMap((guard) => [...guard.protectedCids()])];
  }

  /**
   * Has the tree for itself while `run` looks at it. Blocks that are not on this machine are fetched between two
   * attempts: `run` begins again, so it must read all that it needs before it changes anything. `hold` is that of a
   * caller within `hold`.
   */
  async withTree<T>(options: ReadOptions, run: (root: Folder) => Promise<T>, guard?: GcGuard): Promise<T> {
    const wanted: CID[] = [];
    guard?.protect(() => wanted);
    const fetched = new Map<string, Uint8Array>();
    for (;;) {
      const release = await this.#treeLock.acquireExclusive(options.signal);
      this.#fetched = fetched;
      let absent: CID;
      try {
        return await run(await this.#tree());
      } catch (error) {
        if (!(error instanceof Absent)) throw error;
        absent = error.cid;
      } finally {
        // What one call changes is kept whole or not at all.
        this.#changes.push(...this.#made.splice(0));
        release();
      }
      wanted.push(absent);
      const ask = () => this.reader(options)(absent);
      fetched.set(absent.toString(), await (guard === undefined ? ask() : guard.withoutLock(ask)));
    }
  }

  /** Runs with garbage collection kept out, but for what `run` waits for `away`: what is stored meanwhile stays. */
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

  /** One change, as `look` runs it. */
  change<T>(options: ChangeOptions, run: (root: Folder) => Promise<T>): Promise<T> {
    return this.withGcGuard(options.signal, async (guard) => {
      const result = await this.withTree(options, run, guard);
      await this.afterChange(options);
      return result;
    });
  }

  /** To be awaited behind a change. Those that are not flushed go to the disk, too, when they are many. */
  async afterChange({ flush }: Pick<ChangeOptions, "flush">): Promise<void> {
    if (flush || this.#changes.length >= MAX_CHANGES) await this.commit();
  }

  /** Stores what has changed in a directory and below; it is not on the disk before `commit`. Within `look` only. */
  async store(folder: Folder): Promise<Built> {
    const batch = new BlockBatch(this.blocks);
    const settled: OnStored[] = [];
    const built = await folder.write(batch.add, settled);
    await batch.flush();
    for (const settle of settled) settle();
    return built;
  }

  /** A directory with those of these names in it, one in the other; stored. */
  async newDirectories(names: readonly string[], settings: CidSettings): Promise<Built> {
    const batch = new BlockBatch(this.blocks);
    const form = { ...settings, sharded: this.#sharded() };
    let built = await buildDirectory([], form, batch.add);
    for (const name of names.toReversed()) built = await buildDirectory([{ name, ...built }], form, batch.add);
    await batch.flush();
    return built;
  }

  /** Reads blocks of this machine, within `look`: one that is not here ends the attempt. */
  readonly readLocal: ReadBlock = async (cid) => {
    const bytes = (await this.blocks.find(cid)) ?? this.#fetched.get(cid.toString());
    if (bytes === undefined) throw new Absent(cid);
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

  /** Resolves when all changes up to now are on the disk; `whole`: and the root that they make. */
  commit({ whole = false } = {}): Promise<void> {
    this.#whole ||= whole;
    this.#waiting ??= this.#commitAfter(this.#committing);
    return this.#waiting;
  }

  /** Writes what is not flushed yet. */
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

  /** The tree as it was last kept. */
  async #load(): Promise<Folder> {
    const deps: FolderDeps = {
      read: this.readLocal,
      sharded: this.#sharded,
      // What is made again is kept already.
      changed: (change) => void (this.#root !== undefined && this.#made.push(change)),
    };
    const { cid: empty } = await emptyDirectory(this.blocks, defaultCid);
    const link: PbLink = { name: "", cid: (await this.#journal.root()) ?? empty, size: 0 };
    const root = new Folder(link, await this.readLocal(link.cid), deps);
    for (const change of await this.#journal.changes()) {
      try {
        await redo(root, change);
      } catch (error) {
        // What is only not here may be fetched: until then calls fail, and the change stays where it is kept.
        if (!(error instanceof NodeError)) throw error;
        this.#log.write("mfs", "error", `a change in /${change.at.join("/")} is lost: ${error.message}`);
      }
    }
    return root;
  }
}

async function redo(root: Folder, change: Change): Promise<void> {
  const folder = await lookupFolder(root, { segments: change.at });
  if ("put" in change) await folder.put(change.put);
  else if ("remove" in change) await folder.remove(change.remove);
  else folder.changeSettings(change.settings);
}

/** Of the form that the settings say; stored. */
function emptyDirectory(blocks: BlockService, settings: CidSettings): Promise<Built> {
  return buildDirectory([], { ...settings, sharded: false }, (block) => blocks.put([block]));
}
