/** Blocks as the node sees them: the store, and above it identity CIDs, twin forms, hash safety and the network. */
import type { CID } from "multiformats/cid";
import { identity, matches, requireAllowed } from "../../formats/cid/hashes.ts";
import { fitsVersion0, makeCid } from "../../formats/cid/make.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { BufferPool } from "./buffer_pool.ts";
import type { Block, BlockStore } from "./store.ts";

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
  /** Look on this machine only. */
  readonly offline?: boolean | undefined;
  /** See `BlockStore.get`: for those who hand blocks on and keep nothing of them. */
  readonly buffers?: BufferPool | undefined;
}

/** Where blocks come from that are not here. The node has one while it is online. */
export interface BlockSource {
  /**
   * Resolves with verified bytes of a block that is stored from then on; rejects when the signal does, and when it cannot
   * be stored. `buffers` as in `ReadOptions`.
   */
  fetch(cid: CID, signal: AbortSignal | undefined, buffers?: BufferPool): Promise<Uint8Array>;
}

/** The other form of the same dag-pb block: version 0 for 1 and 1 for 0. */
function twin(cid: CID): CID | undefined {
  const { version, code, multihash } = cid;
  return fitsVersion0(code, multihash) ? makeCid(version === 0 ? 1 : 0, code, multihash) : undefined;
}

function unlessFull(error: unknown): void {
  if (!(error instanceof NodeError) || error.code !== "STORE_FULL") throw error;
}

/** Of storage section 2, "Block store", and conventions section 9, "Hash safety". */
export class BlockService {
  readonly store: BlockStore;
  /** Set while the node is online. */
  source: BlockSource | undefined;
  /** Told of blocks that were put, when they are to be seen: somebody may wait for them. */
  onStored: ((blocks: readonly Block[]) => void) | undefined;
  /** Check every block that is read against its CID, unless the store does (`Datastore.HashOnRead`). */
  hashOnRead = false;
  /** For readers who give blocks back. */
  readonly buffers = new BufferPool();

  constructor(store: BlockStore) {
    this.store = store;
  }

  /** The bytes of a block of this machine; undefined when it is not here. */
  async find(cid: CID, buffers?: BufferPool): Promise<Uint8Array | undefined> {
    requireAllowed(cid.multihash);
    if (cid.multihash.code === identity.code) return cid.multihash.digest;
    const bytes = (await this.store.get(cid, buffers)) ?? (await this.#findTwin(cid));
    const unchecked = bytes !== undefined && this.hashOnRead && !this.store.verifies;
    if (unchecked && !(await matches(cid, bytes))) throw failure("BLOCK_MISMATCH");
    return bytes;
  }

  /** As in the reference, a block that is read under its other form is from then on stored under this one too. */
  async #findTwin(cid: CID): Promise<Uint8Array | undefined> {
    const other = twin(cid);
    const bytes = other && (await this.store.get(other));
    // On a full disk it can be read all the same.
    if (bytes !== undefined) await this.store.put([{ cid, bytes }]).catch(unlessFull);
    return bytes;
  }

  /**
   * The bytes of a block, from the network when it is not here.
   *
   * @throws NodeError BLOCK_NOT_FOUND when it is neither here nor to be asked for elsewhere
   */
  async get(cid: CID, { signal, offline, buffers }: ReadOptions = {}): Promise<Uint8Array> {
    signal?.throwIfAborted();
    const here = await this.find(cid, buffers);
    if (here !== undefined) return here;
    if (offline || this.source === undefined) throw failure("BLOCK_NOT_FOUND");
    return this.source.fetch(cid, signal, buffers);
  }

  /** Whether a block is on this machine, under this form or its twin. */
  async has(cid: CID): Promise<boolean> {
    if (cid.multihash.code === identity.code) return true;
    if (await this.store.has(cid)) return true;
    const other = twin(cid);
    return other !== undefined && this.store.has(other);
  }

  /** Length in bytes of a block of this machine; undefined when it is not here. */
  async size(cid: CID): Promise<number | undefined> {
    if (cid.multihash.code === identity.code) return cid.multihash.digest.length;
    const size = await this.store.size(cid);
    if (size !== undefined) return size;
    const other = twin(cid);
    return other && this.store.size(other);
  }

  /** See `BlockStore.put`; identity CIDs are never stored. @throws NodeError of a hash that may not be stored */
  async put(blocks: readonly Block[]): Promise<void> {
    for (const { cid } of blocks) requireAllowed(cid.multihash);
    const inlined = blocks.some(({ cid }) => cid.multihash.code === identity.code);
    const kept = inlined ? blocks.filter(({ cid }) => cid.multihash.code !== identity.code) : blocks;
    if (kept.length === 0) return;
    await this.store.put(kept);
    this.onStored?.(kept);
  }
}
