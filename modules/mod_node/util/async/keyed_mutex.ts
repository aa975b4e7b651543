/** A mutex for each of many names, first come, first served. */
import { type Release, SharedLock } from "./shared_lock.ts";

/** Waiting can be aborted by a signal; the holder keeps the mutex until it releases it. */
export class KeyedMutex {
  readonly #places = new Map<string, { readonly lock: SharedLock; users: number }>();

  async acquire(name: string, signal?: AbortSignal): Promise<Release> {
    const place = this.#places.get(name) ?? { lock: new SharedLock(), users: 0 };
    this.#places.set(name, place);
    place.users += 1;
    const leave = () => {
      place.users -= 1;
      if (place.users === 0) this.#places.delete(name);
    };
    try {
      const release = await place.lock.acquireExclusive(signal);
      return () => {
        release();
        leave();
      };
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Runs `work` while holding the mutex of that name. */
  async runExclusive<T>(name: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const release = await this.acquire(name, signal);
    try {
      return await work();
    } finally {
      release();
    }
  }
}
