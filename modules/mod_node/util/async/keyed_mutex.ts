/** A mutex per name; waiters get it in the order in which they came. */
import { type Release, SharedLock } from "./shared_lock.ts";

/** A signal can abort the wait. It does not take the mutex away from its holder. */
export class KeyedMutex {
  readonly #locks = new Map<string, { readonly lock: SharedLock; users: number }>();

  async acquire(name: string, signal?: AbortSignal): Promise<Release> {
    const entry = this.#locks.get(name) ?? { lock: new SharedLock(), users: 0 };
    this.#locks.set(name, entry);
    entry.users += 1;
    const leave = () => {
      entry.users -= 1;
      if (entry.users === 0) this.#locks.delete(name);
    };
    try {
      const release = await entry.lock.acquireExclusive(signal);
      return () => {
        release();
        leave();
      };
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Runs `work` while holding the mutex with this name. */
  async runExclusive<T>(name: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const release = await this.acquire(name, signal);
    try {
      return await work();
    } finally {
      release();
    }
  }
}
