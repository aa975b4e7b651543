/**
 * Directories of MFS that are not in the block store because the disk is full. So reading still
 * works then.
 */
import type { CID } from "multiformats/cid";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import type { Block } from "../../storage/blockstore/store.ts";
import { NodeError } from "../../util/errors.ts";

/** Maximum number of bytes in memory. Beyond it `put` fails as on any full disk. */
const MAX_BYTES = 32 * 1024 * 1024;

export const isFull = (error: unknown): boolean => error instanceof NodeError && error.code === "STORE_FULL";

const keyOf = ({ multihash }: CID): string => Buffer.from(multihash.bytes).toString("latin1");

export class UnstoredBlocks {
  readonly #blocks: BlockService;
  readonly #pending = new Map<string, Block>();
  #bytes = 0;

  constructor(blocks: BlockService) {
    this.#blocks = blocks;
  }

  /**
   * Stores blocks, or keeps them in memory if the disk is full. @throws NodeError STORE_FULL beyond
   * the limit
   */
  async put(blocks: readonly Block[]): Promise<void> {
    if (blocks.length === 0) return;
    try {
      await this.#blocks.put(blocks);
    } catch (error) {
      const bytes = blocks.reduce((sum, block) => sum + block.bytes.length, 0);
      if (!isFull(error) || this.#bytes + bytes > MAX_BYTES) throw error;
      for (const block of blocks) this.#pending.set(keyOf(block.cid), block);
      this.#bytes += bytes;
    }
  }

  get(cid: CID): Uint8Array | undefined {
    return this.#pending.size === 0 ? undefined : this.#pending.get(keyOf(cid))?.bytes;
  }

  /**
   * Stores the blocks in memory; it may use the space that is reserved for upkeep. @throws
   * NodeError STORE_FULL
   */
  async write(): Promise<void> {
    if (this.#pending.size === 0) return;
    const blocks = [...this.#pending.values()];
    await this.#blocks.put(blocks, { upkeep: true });
    for (const { cid } of blocks) this.#pending.delete(keyOf(cid));
    this.#bytes = [...this.#pending.values()].reduce((sum, { bytes }) => sum + bytes.length, 0);
  }
}
