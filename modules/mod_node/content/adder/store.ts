/** Single blocks into a node. */
import type { Block } from "../../storage/blockstore/store.ts";
import type { Vault } from "./ingest.ts";

export interface StoreOptions {
  /** Pin the last block recursively; nothing is fetched for it. */
  readonly pin?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Blocks are on the disk when it resolves, and pinned; collection of garbage waits meanwhile. */
export async function storeBlocks(vault: Vault, blocks: readonly Block[], options: StoreOptions): Promise<void> {
  const release = await vault.lock.share(options.signal);
  try {
    await vault.blocks.put(blocks);
    await vault.sync();
    const last = blocks.at(-1);
    if (options.pin === true && last !== undefined) await vault.pins.keep([last.cid]);
    if (last !== undefined) vault.announce?.([last.cid]);
  } finally {
    release();
  }
}
