/** New blocks of one who takes as long as its client does to bring them, and keeps nobody from collecting meanwhile. */
import type { CID } from "multiformats/cid";
import type { Release, SharedLock } from "../../util/async/shared_lock.ts";
import { BlockBatch } from "./batch.ts";
import type { Block, BlockStore } from "./store.ts";

/**
 * A batch with a share of the collector's lock, which gives way whenever somebody wants the lock for itself: what is
 * added then waits. Between `enter` and `leave` who made the batch sees to it that collection spares what is `loose`.
 */
export class PreemptibleBatch {
  readonly #lock: SharedLock;
  readonly #signal: AbortSignal | undefined;
  readonly #batch: BlockBatch;
  readonly #unlinked = new Set<CID>();
  /** What must not be cut in two by a collection. */
  readonly #steps = new Set<Promise<unknown>>();
  /** Until the share is there again. */
  #reacquired: Promise<void> | undefined;
  #left = false;
  #release: Release = () => {};
  #unsubscribe: () => void = () => {};

  constructor(blocks: Pick<BlockStore, "put">, lock: SharedLock, signal?: AbortSignal) {
    this.#batch = new BlockBatch(blocks);
    this.#lock = lock;
    this.#signal = signal;
  }

  /** Bytes of all that was added. */
  get total(): number {
    return this.#batch.total;
  }

  async enter(): Promise<void> {
    this.#release = await this.#lock.acquireShared(this.#signal);
    this.#unsubscribe = this.#lock.onExclusiveWaiting(() => this.#yieldLock());
    if (this.#lock.contended) this.#yieldLock();
  }

  /** To be called when nothing more is added. */
  leave(): void {
    this.#left = true;
    this.#unsubscribe();
    this.#release();
  }

  /** Like `add` of a batch. `links` are those of the block, with the very CIDs that were added before. */
  readonly add = (block: Block, links: readonly { readonly cid: CID }[] = []): Promise<void> | undefined => {
    if (this.#reacquired !== undefined) return this.#reacquired.then(() => this.add(block, links));
    for (const { cid } of links) this.#unlinked.delete(cid);
    this.#unlinked.add(block.cid);
    return this.#batch.add(block);
  };

  /** All that was added is in the store, and nothing is collected until `run` is through as well. */
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

  /** All that was added is in the store. */
  flush(): Promise<void> {
    return this.flushThen(async () => {});
  }

  /** Added, and linked to by nothing that was added since. */
  unlinked(): CID[] {
    return [...this.#unlinked];
  }

  /** Something else spares it from now on, or nothing has to. `cid` is the very one that was added. */
  forget(cid: CID): void {
    this.#unlinked.delete(cid);
  }

  #yieldLock(): void {
    if (this.#reacquired !== undefined || this.#left) return;
    this.#reacquired = this.#reacquire();
    // Whoever adds or settles is told.
    this.#reacquired.catch(() => {});
  }

  async #reacquire(): Promise<void> {
    await Promise.allSettled(this.#steps);
    // A failure is that of all that is added from now on.
    await this.#batch.flush().catch(() => {});
    while (this.#lock.contended && !this.#left) {
      this.#release();
      this.#release = await this.#lock.acquireShared(this.#signal);
    }
    if (this.#left) this.#release();
    this.#reacquired = undefined;
  }
}
