/**
 * Caches the blocks on paths, so that directories are decoded once for many requests. A block that
 * was removed from the node is no longer served from the cache.
 */
import { type NodeModule, type ReadBlock, type Resolved, readSoon } from "modhost/node";

type Cid = Resolved["cid"];

/** Maximum number of bytes of all cached blocks. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Larger directories are not cached, and are decoded for each request. */
const MAX_BLOCK_BYTES = 512 * 1024;
const RAW = 0x55;

interface CachedBlock {
  readonly bytes: Uint8Array;
  /**
   * `removals` of the store when the block was last known to be stored; undefined if the store must
   * be checked again.
   */
  removals: number | undefined;
}

export interface Readers {
  readonly read: ReadBlock;
  readonly readLeaf: ReadBlock;
}

export class PathBlocks {
  readonly #node: NodeModule;
  /** By multihash and codec, the most recently used last. */
  readonly #cache = new Map<string, CachedBlock>();
  #bytes = 0;
  /**
   * Blocks that are too large for the cache, as long as a request uses them. Concurrent requests
   * share one decoded copy.
   */
  readonly #used = new Map<string, WeakRef<Uint8Array>>();
  readonly #unused = new FinalizationRegistry<string>((key) => {
    if (this.#used.get(key)?.deref() === undefined) this.#used.delete(key);
  });

  constructor(node: NodeModule) {
    this.#node = node;
  }

  /**
   * Reads uncached directory blocks with `read`. Blocks without names, which only occur at the end
   * of a path, are read with `readLeaf` and not cached.
   */
  reader(by: Readers): ReadBlock {
    const soon = (cid: Cid) =>
      cid.code === RAW ? readSoon(by.readLeaf, cid) : (this.#now(cid) ?? this.#read(cid, by.read));
    return Object.assign(async (cid: Cid) => soon(cid), { soon });
  }

  /**
   * Returns a cached block, if nothing has been removed from the node since it was stored. @throws
   * NodeError for a denied block
   */
  #now(cid: Cid): Uint8Array | undefined {
    const { blocks } = this.#node.lowLevel;
    blocks.denials?.requireBlock(cid);
    const key = keyOf(cid);
    const cached = this.#cache.get(key);
    if (cached?.removals === undefined || cached.removals !== blocks.store.removals) return undefined;
    this.#touch(key, cached);
    return cached.bytes;
  }

  async #read(cid: Cid, read: ReadBlock): Promise<Uint8Array> {
    const { blocks } = this.#node.lowLevel;
    blocks.denials?.requireBlock(cid);
    const key = keyOf(cid);
    const known = this.#known(key);
    const { removals } = blocks.store;
    if (known !== undefined && (await blocks.has(cid))) {
      const cached = this.#cache.get(key);
      if (cached !== undefined) {
        // Blocks that are available but not in the store, such as MFS directories, disappear
        // without a removal.
        if (removals !== undefined && (await blocks.store.has(cid))) cached.removals = removals;
        this.#touch(key, cached);
      }
      return known;
    }
    const bytes = await read(cid);
    // If several readers decode the same block at once, all use the copy of the first one.
    const other = this.#known(key);
    if (other === undefined) this.#keep(key, bytes);
    return other ?? bytes;
  }

  #known(key: string): Uint8Array | undefined {
    return this.#cache.get(key)?.bytes ?? this.#used.get(key)?.deref();
  }

  #touch(key: string, cached: CachedBlock): void {
    // The order only matters when the cache is at least half full.
    if (this.#bytes > MAX_BYTES / 2 && this.#cache.delete(key)) this.#cache.set(key, cached);
  }

  #keep(key: string, bytes: Uint8Array): void {
    if (bytes.length > MAX_BLOCK_BYTES) {
      this.#used.set(key, new WeakRef(bytes));
      this.#unused.register(bytes, key);
      return;
    }
    this.#bytes += bytes.length - (this.#cache.get(key)?.bytes.length ?? 0);
    this.#cache.delete(key);
    this.#cache.set(key, { bytes, removals: undefined });
    for (const [oldest, { bytes: dropped }] of this.#cache) {
      if (this.#bytes <= MAX_BYTES) return;
      this.#cache.delete(oldest);
      this.#bytes -= dropped.length;
    }
  }
}

const keyOf = ({ code, multihash: { bytes } }: Cid): string =>
  code + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
