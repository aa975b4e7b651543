/** One at a time by name, in the order in which they came. */
import { type Release, SharedLock } from "./shared_lock.ts";

/** Who waits can leave by its signal; who has the turn has it until its work is done, however it ends. */
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

  /** What `work` gives, in the turn of that name. */
  async runExclusive<T>(name: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const release = await this.acquire(name, signal);
    try {
      return await work();
    } finally {
      release();
    }
  }
}
