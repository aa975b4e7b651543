/**
 * Blocks that paths lead through, kept in memory: those of directories are decoded once for many requests. A block that has
 * left the node is not served from here.
 */
import { type NodeModule, type ReadBlock, type Resolved, readSoon } from "modhost/node";

type Cid = Resolved["cid"];

/** Bytes of all blocks that are kept. */
const MAX_BYTES = 8 * 1024 * 1024;
/** A directory that is larger has its turn with each request. */
const MAX_BLOCK_BYTES = 512 * 1024;
const RAW = 0x55;

interface Kept {
  readonly bytes: Uint8Array;
  /** `removals` of the store when it was there; undefined where nobody knows without asking. */
  removals: number | undefined;
}

export interface Readers {
  readonly read: ReadBlock;
  readonly readLeaf: ReadBlock;
}

export class PathBlocks {
  readonly #node: NodeModule;
  /** By multihash and codec; the latest last. */
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;
  /** Those that are too large, while somebody uses them: all who ask at a time have the same, and it is decoded once. */
  readonly #used = new Map<string, WeakRef<Uint8Array>>();
  readonly #unused = new FinalizationRegistry<string>((key) => {
    if (this.#used.get(key)?.deref() === undefined) this.#used.delete(key);
  });

  constructor(node: NodeModule) {
    this.#node = node;
  }

  /** Reads by `read` what is not kept, and by `readLeaf` what has no names, and is met at the end of a path, once. */
  reader(by: Readers): ReadBlock {
    const soon = (cid: Cid) =>
      cid.code === RAW ? readSoon(by.readLeaf, cid) : (this.#now(cid) ?? this.#read(cid, by.read));
    return Object.assign(async (cid: Cid) => soon(cid), { soon });
  }

  /** What is kept, where nothing has left the node since it was there. @throws NodeError for what is denied */
  #now(cid: Cid): Uint8Array | undefined {
    const { blocks } = this.#node.lowLevel;
    blocks.denials?.requireBlock(cid);
    const key = keyOf(cid);
    const kept = this.#kept.get(key);
    if (kept?.removals === undefined || kept.removals !== blocks.store.removals) return undefined;
    this.#touch(key, kept);
    return kept.bytes;
  }

  async #read(cid: Cid, read: ReadBlock): Promise<Uint8Array> {
    const { blocks } = this.#node.lowLevel;
    blocks.denials?.requireBlock(cid);
    const key = keyOf(cid);
    const known = this.#known(key);
    const { removals } = blocks.store;
    if (known !== undefined && (await blocks.has(cid))) {
      const kept = this.#kept.get(key);
      if (kept !== undefined) {
        // What is here and not in the store, as directories of MFS may be, goes without being removed.
        if (removals !== undefined && (await blocks.store.has(cid))) kept.removals = removals;
        this.#touch(key, kept);
      }
      return known;
    }
    const bytes = await read(cid);
    // Of many who came at once the others have it from the first.
    const other = this.#known(key);
    if (other === undefined) this.#keep(key, bytes);
    return other ?? bytes;
  }

  #known(key: string): Uint8Array | undefined {
    return this.#kept.get(key)?.bytes ?? this.#used.get(key)?.deref();
  }

  #touch(key: string, kept: Kept): void {
    // While there is room for more, it does not matter who goes first.
    if (this.#bytes > MAX_BYTES / 2 && this.#kept.delete(key)) this.#kept.set(key, kept);
  }

  #keep(key: string, bytes: Uint8Array): void {
    if (bytes.length > MAX_BLOCK_BYTES) {
      this.#used.set(key, new WeakRef(bytes));
      this.#unused.register(bytes, key);
      return;
    }
    this.#bytes += bytes.length - (this.#kept.get(key)?.bytes.length ?? 0);
    this.#kept.delete(key);
    this.#kept.set(key, { bytes, removals: undefined });
    for (const [oldest, { bytes: dropped }] of this.#kept) {
      if (this.#bytes <= MAX_BYTES) return;
      this.#kept.delete(oldest);
      this.#bytes -= dropped.length;
    }
  }
}

const keyOf = ({ code, multihash: { bytes } }: Cid): string =>
  code + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
