/**
 * Blocks that paths lead through, kept in memory: those of directories are decoded once for many requests. A block that has
 * left the node is not served from here.
 */
import type { NodeModule, ReadBlock, Resolved } from "modhost/node";

type Cid = Resolved["cid"];

/** Bytes of all blocks that are kept. */
const MAX_BYTES = 8 * 1024 * 1024;
/** A directory that is larger has its turn with each request. */
const MAX_BLOCK_BYTES = 512 * 1024;
const RAW = 0x55;

export class PathBlocks {
  readonly #node: NodeModule;
  /** By multihash and codec; the latest last. */
  readonly #kept = new Map<string, Uint8Array>();
  #bytes = 0;
  /** Those that are too large, while somebody uses them: all who ask at a time have the same, and it is decoded once. */
  readonly #used = new Map<string, WeakRef<Uint8Array>>();
  readonly #unused = new FinalizationRegistry<string>((key) => {
    if (this.#used.get(key)?.deref() === undefined) this.#used.delete(key);
  });

  constructor(node: NodeModule) {
    this.#node = node;
  }

  /** Reads by `read` what is not kept. */
  reader(read: ReadBlock): ReadBlock {
    return async (cid) => {
      // A leaf has no names: it is met at the end of a path, once.
      if (cid.code === RAW) return read(cid);
      this.#node.lowLevel.blocks.denials?.requireBlock(cid);
      const key = keyOf(cid);
      const known = this.#known(key);
      if (known !== undefined && (await this.#node.lowLevel.blocks.has(cid))) {
        if (this.#kept.delete(key)) this.#kept.set(key, known);
        return known;
      }
      const bytes = await read(cid);
      // Of many who came at once the others have it from the first.
      const other = this.#known(key);
      if (other === undefined) this.#keep(key, bytes);
      return other ?? bytes;
    };
  }

  #known(key: string): Uint8Array | undefined {
    return this.#kept.get(key) ?? this.#used.get(key)?.deref();
  }

  #keep(key: string, bytes: Uint8Array): void {
    if (bytes.length > MAX_BLOCK_BYTES) {
      this.#used.set(key, new WeakRef(bytes));
      this.#unused.register(bytes, key);
      return;
    }
    this.#bytes += bytes.length - (this.#kept.get(key)?.length ?? 0);
    this.#kept.delete(key);
    this.#kept.set(key, bytes);
    for (const [oldest, { length }] of this.#kept) {
      if (this.#bytes <= MAX_BYTES) return;
      this.#kept.delete(oldest);
      this.#bytes -= length;
    }
  }
}

const keyOf = ({ code, multihash: { bytes } }: Cid): string =>
  code + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
