/** Stores single blocks. */
import type { Block } from "../../storage/blockstore/store.ts";
import type { AdderDeps } from "./adder.ts";

export interface PutBlocksOptions {
  /** Pin the last block recursively. Blocks below it are not fetched. */
  readonly pin?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Do not announce the blocks. */
  readonly offline?: boolean | undefined;
}

/**
 * Resolves when the blocks are durable, and pinned if requested. Garbage collection waits
 * meanwhile.
 */
export async function putBlocks(deps: AdderDeps, blocks: readonly Block[], options: PutBlocksOptions): Promise<void> {
  const release = await deps.lock.acquireShared(options.signal);
  try {
    const last = blocks.at(-1);
    let isNew = false;
    await deps.blocks.put(blocks, {
      offline: options.offline,
      onNew: (cid) => {
        isNew ||= cid === last?.cid;
      },
    });
    await deps.sync();
    if (options.pin === true && last !== undefined) await deps.pins.keep([last.cid]);
    if (last !== undefined && isNew && options.offline !== true) deps.announce?.([last.cid]);
  } finally {
    release();
  }
}
