/**
 * A share of the garbage collector's lock, for a call that changes MFS and may have to fetch blocks
 * from peers.
 */
import type { CID } from "multiformats/cid";
import { PreemptibleBatch } from "../../storage/blockstore/preemptible_batch.ts";
import type { BlockStore } from "../../storage/blockstore/store.ts";
import type { Release, SharedLock } from "../../util/async/shared_lock.ts";

export class GcGuard {
  readonly #lock: SharedLock;
  readonly #signal: AbortSignal | undefined;
  readonly #protected: (() => Iterable<CID>)[] = [];
  #releaseLock: Release = () => {};
  /**
   * The lock's `voids` counter when the share was acquired. If the counter has changed, earlier
   * blocks may have been removed.
   */
  #voids = 0;

  constructor(lock: SharedLock, signal: AbortSignal | undefined) {
    this.#lock = lock;
    this.#signal = signal;
  }

  /**
   * @param voids the lock's `voids` counter when the call had put the blocks that it links now
   *
   * @throws NodeError SESSION_LOST when these blocks may have been removed since
   */
  async acquire(voids?: number): Promise<void> {
    const lock = this.#lock;
    this.#releaseLock = await (voids === undefined
      ? lock.acquireShared(this.#signal)
      : lock.acquireSharedAgain(voids, this.#signal));
    this.#voids = lock.voids;
  }

  release(): void {
    this.#releaseLock();
  }

  /**
   * Releases the lock while `ask` waits for a peer. `ask` must not store anything.
   *
   * @throws NodeError SESSION_LOST when protected blocks may have been removed meanwhile
   */
  async withoutLock<T>(ask: () => Promise<T>): Promise<T> {
    this.release();
    try {
      return await ask();
    } finally {
      this.#releaseLock = await this.#lock.acquireSharedAgain(this.#voids, this.#signal);
    }
  }

  /**
   * Releases the lock while `run` puts blocks into a preemptible batch, at the speed of a client.
   */
  withBatch<T>(blocks: Pick<BlockStore, "put">, run: (batch: PreemptibleBatch) => Promise<T>): Promise<T> {
    const batch = new PreemptibleBatch(blocks, this.#lock, { signal: this.#signal });
    this.protect(() => batch.unlinked());
    return this.withoutLock(async () => {
      await batch.enter();
      return run(batch).finally(() => batch.leave());
    });
  }

  /** Protects CIDs that nothing refers to yet. `cids` is called when a collection begins. */
  protect(cids: () => Iterable<CID>): void {
    this.#protected.push(cids);
  }

  *protectedCids(): Generator<CID, void, undefined> {
    for (const cids of this.#protected) yield* cids();
  }
}
