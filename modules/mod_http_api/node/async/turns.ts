/** One at a time by name, in the order in which they came. */
import { type Release, SharedLock } from "./lock.ts";

export class Turns {
  readonly #places = new Map<string, { readonly lock: SharedLock; users: number }>();

  async take(name: string, signal?: AbortSignal): Promise<Release> {
    const place = this.#places.get(name) ?? { lock: new SharedLock(), users: 0 };
    this.#places.set(name, place);
    place.users += 1;
    const leave = () => {
      place.users -= 1;
      if (place.users === 0) this.#places.delete(name);
    };
    try {
      const release = await place.lock.exclude(signal);
      return () => {
        release();
        leave();
      };
    } catch (error) {
      leave();
      throw error;
    }
  }
}
