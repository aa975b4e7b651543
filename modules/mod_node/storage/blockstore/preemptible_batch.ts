/** A batch of new blocks for clients that may be slow. Garbage collection does not wait for it. */
import type { CID } from "multiformats/cid";
import type { Release, SharedLock } from "../../util/async/shared_lock.ts";
import { BlockBatch } from "./batch.ts";
import type { BlockService } from "./block_service.ts";
import type { Block } from "./store.ts";

export interface BatchOptions {
  /** Aborts waiting for the lock. */
  readonly signal?: AbortSignal | undefined;
  /** Whether to announce nothing. */
  readonly offline?: boolean | undefined;
}

/**
 * A batch that holds the garbage collection lock as a shared lock and releases it whenever somebody
 * wants the lock exclusively. Blocks that are added in the meantime wait. Between `enter` and
 * `leave`, the caller must protect the blocks of `unlinked` from collection.
 */
export class PreemptibleBatch {
  readonly #lock: SharedLock;
  readonly #signal: AbortSignal | undefined;
  readonly #batch: BlockBatch;
  readonly #unlinked = new Set<CID>();
  /** Steps that a collection must not interrupt. */
  readonly #steps = new Set<Promise<unknown>>();
  /** Resolves when the lock is acquired again. */
  #reacquired: Promise<void> | undefined;
  #left = false;
  /** The `voids` of the lock when the batch began. */
  #voids = 0;
  #release: Release = () => {};
  #unsubscribe: () => void = () => {};

  constructor(blocks: Pick<BlockService, "put">, lock: SharedLock, { signal, offline }: BatchOptions = {}) {
    this.#batch = new BlockBatch(offline === true ? { put: (some) => blocks.put(some, { offline }) } : blocks);
    this.#lock = lock;
    this.#signal = signal;
  }

  /** Total bytes of all added blocks. */
  get total(): number {
    return this.#batch.total;
  }

  async enter(): Promise<void> {
    this.#release = await this.#lock.acquireShared(this.#signal);
    this.#voids = this.#lock.voids;
    this.#unsubscribe = this.#lock.onExclusiveWaiting(() => this.#yieldLock());
    if (this.#lock.contended) this.#yieldLock();
  }

  /** Ends the batch. Nothing may be added after that. */
  leave(): void {
    this.#left = true;
    this.#unsubscribe();
    this.#release();
  }

  /**
   * Adds a block like `BlockBatch.add`. `links` are the links of the block; their CIDs must be the
   * same objects that were added before.
   */
  readonly add = (block: Block, links: readonly { readonly cid: CID }[] = []): Promise<void> | undefined => {
    if (this.#reacquired !== undefined) return this.#reacquired.then(() => this.add(block, links));
    for (const { cid } of links) this.#unlinked.delete(cid);
    this.#unlinked.add(block.cid);
    return this.#batch.add(block);
  };

  /**
   * Runs `run` when every added block is in the store. Garbage collection waits until `run` has
   * ended.
   */
  async flushThen<T>(run: () => Promise<T>): Promise<T> {
    while (this.#reacquired !== undefined) await this.#reacquired;
    const step = this.#batch.flush().then(run);
    this.#steps.add(step);
    try {
      return await step;
    } finally {
      this.#steps.delete(step);
    }
  }

  /** Resolves when every added block is in the store. */
  flush(): Promise<void> {
    return this.flushThen(async () => {});
  }

  /** Returns the added blocks that no later block links to. */
  unlinked(): CID[] {
    return [...this.#unlinked];
  }

  /** Ends the protection of a block. `cid` must be the same object that was added. */
  forget(cid: CID): void {
    this.#unlinked.delete(cid);
  }

  #yieldLock(): void {
    if (this.#reacquired !== undefined || this.#left) return;
    this.#reacquired = this.#reacquire();
    // Callers that add or flush see the failure.
    this.#reacquired.catch(() => {});
  }

  async #reacquire(): Promise<void> {
    await Promise.allSettled(this.#steps);
    // Every later call reports the failure.
    await this.#batch.flush().catch(() => {});
    while (this.#lock.contended && !this.#left) {
      this.#release();
      this.#release = await this.#lock.acquireSharedAgain(this.#voids, this.#signal);
    }
    if (this.#left) this.#release();
    this.#reacquired = undefined;
  }
}
