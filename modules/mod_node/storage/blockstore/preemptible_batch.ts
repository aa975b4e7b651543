/** A batch of new blocks for clients that may be slow: garbage collection does not wait for them. */
import type { CID } from "multiformats/cid";
import type { Release, SharedLock } from "../../util/async/shared_lock.ts";
import { BlockBatch } from "./batch.ts";
import type { BlockService } from "./block_service.ts";
import type { Block } from "./store.ts";

export interface BatchOptions {
  /** Ends waiting for the lock. */
  readonly signal?: AbortSignal | undefined;
  /** Announce nothing. */
  readonly offline?: boolean | undefined;
}

/**
 * A batch that holds a share of the garbage collector's lock and gives it up whenever somebody wants the lock
 * exclusively; blocks that are added meanwhile wait. Between `enter` and `leave` whoever made the batch must protect
 * what `unlinked` gives from collection.
 */
export class PreemptibleBatch {
  readonly #lock: SharedLock;
  readonly #signal: AbortSignal | undefined;
  readonly #batch: BlockBatch;
  readonly #unlinked = new Set<CID>();
  /** Steps that a collection must not interrupt. */
  readonly #steps = new Set<Promise<unknown>>();
  /** Resolves when the share is held again. */
  #reacquired: Promise<void> | undefined;
  #left = false;
  /** Of the lock, when this began. */
  #voids = 0;
  #release: Release = () => {};
  #unsubscribe: () => void = () => {};

  constructor(blocks: Pick<BlockService, "put">, lock: SharedLock, { signal, offline }: BatchOptions = {}) {
    this.#batch = new BlockBatch(offline === true ? { put: (some) => blocks.put(some, { offline }) } : blocks);
    this.#lock = lock;
    this.#signal = signal;
  }

  /** Bytes of all blocks that were added. */
  get total(): number {
    return this.#batch.total;
  }

  async enter(): Promise<void> {
    this.#release = await this.#lock.acquireShared(this.#signal);
    this.#voids = this.#lock.voids;
    this.#unsubscribe = this.#lock.onExclusiveWaiting(() => this.#yieldLock());
    if (this.#lock.contended) this.#yieldLock();
  }

  /** To be called when nothing more is added. */
  leave(): void {
    this.#left = true;
    this.#unsubscribe();
    this.#release();
  }

  /**
   * Like `BlockBatch.add`. `links` are the links of the block; their CIDs are the very objects that were added before.
   */
  readonly add = (block: Block, links: readonly { readonly cid: CID }[] = []): Promise<void> | undefined => {
    if (this.#reacquired !== undefined) return this.#reacquired.then(() => this.add(block, links));
    for (const { cid } of links) this.#unlinked.delete(cid);
    this.#unlinked.add(block.cid);
    return this.#batch.add(block);
  };

  /** Runs `run` once every added block is in the store, and keeps collection out until it has ended. */
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

  /** Blocks that were added and that no later block links to. */
  unlinked(): CID[] {
    return [...this.#unlinked];
  }

  /** The block needs no more protection from here. `cid` is the very object that was added. */
  forget(cid: CID): void {
    this.#unlinked.delete(cid);
  }

  #yieldLock(): void {
    if (this.#reacquired !== undefined || this.#left) return;
    this.#reacquired = this.#reacquire();
    // Whoever adds or flushes sees the failure.
    this.#reacquired.catch(() => {});
  }

  async #reacquire(): Promise<void> {
    await Promise.allSettled(this.#steps);
    // A failure is reported by every later call.
    await this.#batch.flush().catch(() => {});
    while (this.#lock.contended && !this.#left) {
      this.#release();
      this.#release = await this.#lock.acquireSharedAgain(this.#voids, this.#signal);
    }
    if (this.#left) this.#release();
    this.#reacquired = undefined;
  }
}
