/** A share of the collector's lock, for one who changes something and may have to ask peers on the way. */
import type { CID } from "multiformats/cid";
import { PreemptibleBatch } from "../../storage/blockstore/preemptible_batch.ts";
import type { BlockStore } from "../../storage/blockstore/store.ts";
import type { Release, SharedLock } from "../../util/async/shared_lock.ts";

export class GcGuard {
  readonly #lock: SharedLock;
  readonly #signal: AbortSignal | undefined;
  readonly #protected: (() => Iterable<CID>)[] = [];
  #releaseLock: Release = () => {};

  constructor(lock: SharedLock, signal: AbortSignal | undefined) {
    this.#lock = lock;
    this.#signal = signal;
  }

  async acquire(): Promise<void> {
    this.#releaseLock = await this.#lock.acquireShared(this.#signal);
  }

  release(): void {
    this.#releaseLock();
  }

  /** Lets collection through while `ask` waits for a peer; it stores nothing. */
  async withoutLock<T>(ask: () => Promise<T>): Promise<T> {
    this.release();
    try {
      return await ask();
    } finally {
      await this.acquire();
    }
  }

  /** Likewise while `run` puts blocks, no faster than a client brings them. */
  withBatch<T>(blocks: Pick<BlockStore, "put">, run: (batch: PreemptibleBatch) => Promise<T>): Promise<T> {
    const batch = new PreemptibleBatch(blocks, this.#lock, this.#signal);
    this.protect(() => batch.unlinked());
    return this.withoutLock(async () => {
      await batch.enter();
      return run(batch).finally(() => batch.leave());
    });
  }

  /** Saves from collection what nothing leads to yet: asked for when one begins. */
  protect(cids: () => Iterable<CID>): void {
    this.#protected.push(cids);
  }

  *protectedCids(): Generator<CID, void, undefined> {
    for (const cids of this.#protected) yield* cids();
  }
}
