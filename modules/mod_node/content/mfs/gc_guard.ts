/** A share of the collector's lock, for one who changes something and may have to ask peers on the way. */
import type { CID } from "multiformats/cid";
import { LooseBatch } from "../../storage/blockstore/preemptible_batch.ts";
import type { BlockStore } from "../../storage/blockstore/store.ts";
import type { Release, SharedLock } from "../../util/async/lock.ts";

export class Hold {
  readonly #lock: SharedLock;
  readonly #signal: AbortSignal | undefined;
  readonly #spared: (() => Iterable<CID>)[] = [];
  #release: Release = () => {};

  constructor(lock: SharedLock, signal: AbortSignal | undefined) {
    this.#lock = lock;
    this.#signal = signal;
  }

  async take(): Promise<void> {
    this.#release = await this.#lock.share(this.#signal);
  }

  leave(): void {
    this.#release();
  }

  /** Lets collection through while `ask` waits for a peer; it stores nothing. */
  async away<T>(ask: () => Promise<T>): Promise<T> {
    this.leave();
    try {
      return await ask();
    } finally {
      await this.take();
    }
  }

  /** Likewise while `run` puts blocks, no faster than a client brings them. */
  unhurried<T>(blocks: Pick<BlockStore, "put">, run: (batch: LooseBatch) => Promise<T>): Promise<T> {
    const batch = new LooseBatch(blocks, this.#lock, this.#signal);
    this.spare(() => batch.loose());
    return this.away(async () => {
      await batch.enter();
      return run(batch).finally(() => batch.leave());
    });
  }

  /** Saves from collection what nothing leads to yet: asked for when one begins. */
  spare(cids: () => Iterable<CID>): void {
    this.#spared.push(cids);
  }

  *spared(): Generator<CID, void, undefined> {
    for (const cids of this.#spared) yield* cids();
  }
}
