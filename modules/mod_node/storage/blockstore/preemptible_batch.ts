/** New blocks of one who takes as long as its client does to bring them, and keeps nobody from collecting meanwhile. */
import type { CID } from "multiformats/cid";
import type { Release, SharedLock } from "../../util/async/lock.ts";
import { BlockBatch } from "./batch.ts";
import type { Block, BlockStore } from "./store.ts";

/**
 * A batch with a share of the collector's lock, which gives way whenever somebody wants the lock for itself: what is
 * added then waits. Between `enter` and `leave` who made the batch sees to it that collection spares what is `loose`.
 */
export class LooseBatch {
  readonly #lock: SharedLock;
  readonly #signal: AbortSignal | undefined;
  readonly #batch: BlockBatch;
  readonly #loose = new Set<CID>();
  /** What must not be cut in two by a collection. */
  readonly #steps = new Set<Promise<unknown>>();
  /** Until the share is there again. */
  #back: Promise<void> | undefined;
  #left = false;
  #release: Release = () => {};
  #unheard: () => void = () => {};

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
    this.#release = await this.#lock.share(this.#signal);
    this.#unheard = this.#lock.whenWanted(() => this.#giveWay());
    if (this.#lock.contended) this.#giveWay();
  }

  /** To be called when nothing more is added. */
  leave(): void {
    this.#left = true;
    this.#unheard();
    this.#release();
  }

  /** Like `add` of a batch. `links` are those of the block, with the very CIDs that were added before. */
  readonly add = (block: Block, links: readonly { readonly cid: CID }[] = []): Promise<void> | undefined => {
    if (this.#back !== undefined) return this.#back.then(() => this.add(block, links));
    for (const { cid } of links) this.#loose.delete(cid);
    this.#loose.add(block.cid);
    return this.#batch.add(block);
  };

  /** All that was added is in the store, and nothing is collected until `run` is through as well. */
  async settle<T>(run: () => Promise<T>): Promise<T> {
    while (this.#back !== undefined) await this.#back;
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
    return this.settle(async () => {});
  }

  /** Added, and linked to by nothing that was added since. */
  loose(): CID[] {
    return [...this.#loose];
  }

  /** Something else spares it from now on, or nothing has to. `cid` is the very one that was added. */
  letGo(cid: CID): void {
    this.#loose.delete(cid);
  }

  #giveWay(): void {
    if (this.#back !== undefined || this.#left) return;
    this.#back = this.#away();
    // Whoever adds or settles is told.
    this.#back.catch(() => {});
  }

  async #away(): Promise<void> {
    await Promise.allSettled(this.#steps);
    // A failure is that of all that is added from now on.
    await this.#batch.flush().catch(() => {});
    while (this.#lock.contended && !this.#left) {
      this.#release();
      this.#release = await this.#lock.share(this.#signal);
    }
    if (this.#left) this.#release();
    this.#back = undefined;
  }
}
