/**
 * A share of the garbage collector's lock, for a call that changes MFS and may have to fetch from
 * peers on the way.
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
  /** Of the lock, when this began. */
  #voids = 0;

  constructor(lock: SharedLock, signal: AbortSignal | undefined) {
    this.#lock = lock;
    this.#signal = signal;
  }

  /**
   * `voids`: of the lock, when the call had put what it now links. @throws NodeError SESSION_LOST
   * when that may have gone since
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
   * Gives up the lock while `ask` waits for a peer; it must not store anything.
   *
   * @throws NodeError SESSION_LOST when what was protected may have gone meanwhile
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
   * Gives up the lock while `run` puts blocks into a preemptible batch, no faster than a client
   * sends them.
   */
  withBatch<T>(blocks: Pick<BlockStore, "put">, run: (batch: PreemptibleBatch) => Promise<T>): Promise<T> {
    const batch = new PreemptibleBatch(blocks, this.#lock, { signal: this.#signal });
    this.protect(() => batch.unlinked());
    return this.withoutLock(async () => {
      await batch.enter();
      return run(batch).finally(() => batch.leave());
    });
  }

  /** Protects CIDs that nothing refers to yet; asked for when a collection begins. */
  protect(cids: () => Iterable<CID>): void {
    this.#protected.push(cids);
  }

  *protectedCids(): Generator<CID, void, undefined> {
    for (const cids of this.#protected) yield* cids();
  }
}
