/**
 * The block service: the block store of this machine, and on top of it identity CIDs, versions and
 * codecs of CIDs, the check of hash functions, and the network.
 */
import { tracingChannel } from "node:diagnostics_channel";
import type { CID } from "multiformats/cid";
import type { BlockTrace } from "../../../../core/types.ts";
import { dagPb } from "../../formats/cid/codecs.ts";
import { identity, matches, requireAllowed, sha256 } from "../../formats/cid/hashes.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { BlockNotes } from "./block_notes.ts";
import { BufferPool } from "./buffer_pool.ts";
import { DamagedBlocks } from "./damaged_blocks.ts";
import { MIN_REMEMBERED_BYTES, remember } from "./origins.ts";
import type { Block, BlockStore, PutOptions, Span } from "./store.ts";

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
  /** Reads from this machine only. */
  readonly offline?: boolean | undefined;
  /** Skips `pending`; `pending` itself reads with this option. */
  readonly storedOnly?: boolean | undefined;
  /**
   * Reads denied blocks as well, for callers that give the bytes to nobody, such as garbage
   * collection.
   */
  readonly evenDenied?: boolean | undefined;
  /**
   * The pool to read into, for callers that pass blocks on and do not retain them; see
   * `BlockStore.get`.
   */
  readonly buffers?: BufferPool | undefined;
}

export interface ServicePutOptions extends PutOptions {
  /** Does not announce the blocks to the network. */
  readonly offline?: boolean | undefined;
}

/** Traces the blocks that are fetched. */
const fetches = tracingChannel<BlockTrace>("modhost:block");

/** Fetches blocks that are not on this machine: bitswap, while the node is online. */
export interface BlockSource {
  /**
   * Resolves with the verified bytes of a block, which is stored from then on. Rejects when the
   * signal aborts or the block cannot be stored. `buffers` is as in `ReadOptions`.
   */
  fetch(cid: CID, signal: AbortSignal | undefined, buffers?: BufferPool): Promise<Uint8Array>;
}

/**
 * Blocks that are not in the store yet. These are the changed directories of MFS, whose blocks are
 * made on demand.
 */
export interface PendingBlocks {
  /** Returns the bytes of a pending block; undefined if the block is not pending. */
  find(cid: CID): Promise<Uint8Array | undefined>;
  /** Resolves when everything is in the store, as far as the disk has room. */
  settle(): Promise<void>;
  /**
   * Stores blocks that `find` returned although the disk had no room for them.
   * @throws NodeError STORE_FULL
   */
  write(): Promise<void>;
}

/** The denylists. Denied blocks are neither read for users nor served. */
export interface Denials {
  denies(cid: CID): boolean;
  /** @throws NodeError CONTENT_BLOCKED, CONTENT_BLOCKED_LEGALLY */
  requireBlock(cid: CID): void;
}

function unlessFull(error: unknown): void {
  if (!(error instanceof NodeError) || error.code !== "STORE_FULL") throw error;
}

/**
 * Reads, writes and deletes blocks for the rest of the node. Refuses hash functions that go-ipfs
 * calls insecure.
 */
export class BlockService {
  readonly store: BlockStore;
  /** Set while the node is online. */
  source: BlockSource | undefined;
  /** The source of blocks that are not in the store yet. */
  pending: PendingBlocks | undefined;
  /**
   * Undefined when nothing is denied. `get` checks it; callers of `find` check it themselves before
   * bytes leave the node.
   */
  denials: Denials | undefined;
  /**
   * Called with blocks that were put when they are visible, because somebody may be waiting for
   * them.
   */
  onStored: ((blocks: readonly Block[]) => void) | undefined;
  /**
   * Called with blocks that were not stored before, so that they can be announced. The CIDs may be
   * views of larger arrays. Set while the node is online.
   */
  onNew: ((cids: readonly CID[]) => void) | undefined;
  /**
   * Whether to check every block that is read against its CID (`Datastore.HashOnRead`), unless the
   * store does so itself.
   */
  hashOnRead = false;
  /** The pool for readers that release their blocks after use. */
  readonly buffers = new BufferPool();
  readonly damaged: DamagedBlocks;
  /** Numbers of blocks that readers requested: found in the store, fetched, and not available. */
  readonly reads = { stored: 0, fetched: 0, missing: 0 };
  readonly #notes = new BlockNotes();
  /** The number of removals in the store when the notes were made. */
  #removals = 0;

  constructor(store: BlockStore, damaged = new DamagedBlocks()) {
    this.store = store;
    this.damaged = damaged;
  }

  /** Returns the bytes of a block on this machine; undefined when it is not here. */
  async find(cid: CID, buffers?: BufferPool): Promise<Uint8Array | undefined> {
    return (await this.findStored(cid, buffers)) ?? this.pending?.find(cid);
  }

  /** Like `find`, but only looks in the store. */
  async findStored(cid: CID, buffers?: BufferPool): Promise<Uint8Array | undefined> {
    requireAllowed(cid.multihash);
    if (cid.multihash.code === identity.code) return cid.multihash.digest;
    try {
      const bytes = (await this.store.get(cid, buffers)) ?? (await this.#findOtherForm(cid));
      const unchecked = bytes !== undefined && this.hashOnRead && !this.store.verifies;
      if (unchecked && !(await matches(cid, bytes))) throw failure("BLOCK_MISMATCH");
      return bytes;
    } catch (error) {
      throw this.#recorded(cid, error);
    }
  }

  #recorded(cid: CID, error: unknown): unknown {
    this.damaged.record(cid, error, this.store.pathOf?.(cid));
    return error;
  }

  /**
   * Finds a block by its multihash, whatever version and codec it was stored with. As go-ipfs does
   * for versions, this stores the block with the requested CID as well, so that a pin retains it.
   */
  async #findOtherForm(cid: CID): Promise<Uint8Array | undefined> {
    for (const other of await this.store.forms(cid)) {
      const bytes = await this.store.get(other);
      if (bytes === undefined) continue;
      // On a full disk, the block can still be read.
      await this.store.put([{ cid, bytes }]).catch(unlessFull);
      return bytes;
    }
    return undefined;
  }

  /**
   * Returns the bytes of a block, from the network when it is not on this machine.
   *
   * @throws NodeError BLOCK_NOT_FOUND when it is not here and no peer can be asked, CONTENT_BLOCKED
   * when it is denied
   */
  async get(cid: CID, options: ReadOptions = {}): Promise<Uint8Array> {
    return this.#remembered(await this.#get(cid, options), cid, options);
  }

  /**
   * Like `get`, but returns no promise when the bytes are at hand.
   * @throws the errors of `get`
   */
  getSoon(cid: CID, options: ReadOptions = {}): Uint8Array | Promise<Uint8Array> {
    const { signal, evenDenied, buffers } = options;
    if (this.hashOnRead || cid.multihash.code === identity.code) return this.get(cid, options);
    requireAllowed(cid.multihash);
    signal?.throwIfAborted();
    if (this.denials !== undefined && evenDenied !== true) this.denials.requireBlock(cid);
    const coming = this.store.getSoon?.(cid, buffers);
    if (coming === undefined) return this.get(cid, options);
    if (coming instanceof Promise) return this.#counted(coming, cid, options);
    this.reads.stored += 1;
    return this.#remembered(coming, cid, options);
  }

  async #counted(coming: Promise<Uint8Array>, cid: CID, options: ReadOptions): Promise<Uint8Array> {
    const bytes = await coming.catch((error: unknown) => {
      throw this.#recorded(cid, error);
    });
    this.reads.stored += 1;
    return this.#remembered(bytes, cid, options);
  }

  #remembered(bytes: Uint8Array, cid: CID, options: ReadOptions): Uint8Array {
    if (bytes.length >= MIN_REMEMBERED_BYTES) remember(bytes, () => this.get(cid, options));
    return bytes;
  }

  /** Like `get` for a range of the bytes; returns fewer bytes when the block ends earlier. */
  async getPart(cid: CID, span: Span, options: ReadOptions = {}): Promise<Uint8Array> {
    const bytes = await this.#storedPart(cid, span, options);
    if (bytes === undefined) return (await this.get(cid, options)).subarray(span.from, span.to);
    this.reads.stored += 1;
    if (bytes.buffer.byteLength >= MIN_REMEMBERED_BYTES) remember(bytes, () => this.getPart(cid, span, options));
    return bytes;
  }

  /** Returns undefined when the caller must use `get`, which reports the reason. */
  async #storedPart(cid: CID, span: Span, options: ReadOptions): Promise<Uint8Array | undefined> {
    const { signal, evenDenied, buffers } = options;
    if (this.hashOnRead || cid.multihash.code === identity.code) return undefined;
    requireAllowed(cid.multihash);
    signal?.throwIfAborted();
    if (this.denials !== undefined && evenDenied !== true) this.denials.requireBlock(cid);
    return this.store.getPart?.(cid, span, buffers).catch((error: unknown) => {
      throw this.#recorded(cid, error);
    });
  }

  async #get(cid: CID, options: ReadOptions): Promise<Uint8Array> {
    const { signal, offline, storedOnly, buffers } = options;
    signal?.throwIfAborted();
    if (this.denials !== undefined && options.evenDenied !== true) this.denials.requireBlock(cid);
    const stored = await this.findStored(cid, buffers);
    const here = stored === undefined && !storedOnly ? await this.pending?.find(cid) : stored;
    if (here !== undefined) {
      this.reads.stored += 1;
      return here;
    }
    if (offline || this.source === undefined) {
      this.reads.missing += 1;
      throw failure("BLOCK_NOT_FOUND", { cid: String(cid) });
    }
    return this.#fetch(this.source, cid, signal, buffers);
  }

  /**
   * See `BlockStore.peek`. Denied blocks, and blocks that must be hashed at each read, are left to
   * `get`.
   */
  peek(cids: readonly CID[], options: ReadOptions): readonly (Uint8Array | undefined)[] {
    const { denials, store } = this;
    const { signal, evenDenied, buffers } = options;
    if (signal?.aborted || store.peek === undefined || buffers === undefined || this.hashOnRead) return [];
    if (denials !== undefined && evenDenied !== true && cids.some((cid) => denials.denies(cid))) return [];
    const found = store.peek(cids, buffers);
    for (const [at, bytes] of found.entries()) {
      if (bytes === undefined) continue;
      this.reads.stored += 1;
      this.#remembered(bytes, cids[at] as CID, options);
    }
    return found;
  }

  /**
   * Returns the number that `note` stored for a dag-pb block that is still in the store. Returns
   * undefined for other blocks, and when each read must be checked.
   */
  noted(cid: CID, { evenDenied }: ReadOptions): number | undefined {
    if (!this.#isNotable(cid)) return undefined;
    const note = this.#notes.get(cid);
    if (note === undefined) return undefined;
    if (this.denials !== undefined && evenDenied !== true && this.denials.denies(cid)) return undefined;
    this.reads.stored += 1;
    return note;
  }

  /**
   * Remembers a number for a block whose bytes came from `peek`, that is, from the store itself.
   * All callers must use the same number for the same block.
   */
  note(cid: CID, value: number): void {
    if (this.#isNotable(cid)) this.#notes.set(cid, value);
  }

  /**
   * While this number does not change, a caller that could read some blocks can still read them,
   * with the same result. Undefined when each read must be checked.
   */
  get standing(): number | undefined {
    return this.hashOnRead || this.denials !== undefined ? undefined : this.store.removals;
  }

  #isNotable({ code, multihash }: CID): boolean {
    const { removals } = this.store;
    if (removals === undefined || this.hashOnRead || code !== dagPb || multihash.code !== sha256.code) return false;
    if (removals !== this.#removals) {
      this.#removals = removals;
      this.#notes.clear();
    }
    return true;
  }

  async #fetch(source: BlockSource, cid: CID, signal?: AbortSignal, buffers?: BufferPool): Promise<Uint8Array> {
    try {
      const fetch = () => source.fetch(cid, signal, buffers);
      const bytes = await (fetches.hasSubscribers ? fetches.tracePromise(fetch, { cid, error: undefined }) : fetch());
      this.reads.fetched += 1;
      return bytes;
    } catch (error) {
      this.reads.missing += 1;
      throw error;
    }
  }

  /** Whether a block is on this machine, with any version and codec. */
  async has(cid: CID): Promise<boolean> {
    if (cid.multihash.code === identity.code) return true;
    if (await this.store.has(cid)) return true;
    if ((await this.store.forms(cid)).length > 0) return true;
    return (await this.pending?.find(cid)) !== undefined;
  }

  /** Returns the length in bytes of a block on this machine; undefined when it is not here. */
  async size(cid: CID): Promise<number | undefined> {
    if (cid.multihash.code === identity.code) return cid.multihash.digest.length;
    const size = await this.store.size(cid);
    if (size !== undefined) return size;
    const [other] = await this.store.forms(cid);
    return (other && (await this.store.size(other))) ?? (await this.pending?.find(cid))?.length;
  }

  /**
   * Stores blocks; see `BlockStore.put`. Identity CIDs are never stored.
   * @throws NodeError for a hash function that is not allowed
   */
  async put(blocks: readonly Block[], { offline, ...options }: ServicePutOptions = {}): Promise<void> {
    for (const { cid } of blocks) requireAllowed(cid.multihash);
    const inlined = blocks.some(({ cid }) => cid.multihash.code === identity.code);
    const stored = inlined ? blocks.filter(({ cid }) => cid.multihash.code !== identity.code) : blocks;
    if (stored.length === 0) return;
    if (offline === true || this.onNew === undefined) {
      await this.store.put(stored, options);
      this.damaged.stored(stored);
      this.onStored?.(stored);
      return;
    }
    const made: CID[] = [];
    const onNew = (cid: CID) => {
      made.push(cid);
      options.onNew?.(cid);
    };
    await this.store.put(stored, { ...options, onNew });
    this.damaged.stored(stored);
    this.onStored?.(stored);
    if (made.length > 0) this.onNew?.(made);
  }
}
