/** So many places are kept when nothing is left: it takes no time to look at them, and some to make them. */
const MAX_EMPTY = 1024;

/**
 * Things that come and go by the thousand, each known by the place that `add` gave it. A Set would do, but V8 links each
 * table that a Set has outgrown to those that follow: once one of them is old, all that is in the later ones outlives its
 * time, and is copied again and again.
 */
export class Slots<T extends object> implements Iterable<T> {
  readonly #all: (T | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#all.length - this.#free.length;
  }

  add(one: T): number {
    const place = this.#free.pop() ?? this.#all.length;
    this.#all[place] = one;
    return place;
  }

  /** Once for each `add`. */
  delete(place: number): void {
    this.#all[place] = undefined;
    this.#free.push(place);
    if (this.#all.length <= MAX_EMPTY || this.size > 0) return;
    this.#all.length = 0;
    this.#free.length = 0;
  }

  /** In no order. What comes or goes meanwhile may be met, or not. */
  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (const one of this.#all) if (one !== undefined) yield one;
  }
}
