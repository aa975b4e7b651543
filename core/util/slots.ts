/**
 * Number of empty slots that stay allocated: scanning them costs nothing, but allocating them does.
 */
const MAX_EMPTY = 1024;

/**
 * A collection for thousands of short-lived things, each identified by the slot that `add` returns.
 * A Set would work, but V8 links each outgrown table of a Set to its successors: once one of them
 * is old, everything in the later ones survives too long, and is copied again and again.
 */
export class Slots<T extends object> implements Iterable<T> {
  readonly #all: (T | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#all.length - this.#free.length;
  }

  add(one: T): number {
    const slot = this.#free.pop() ?? this.#all.length;
    this.#all[slot] = one;
    return slot;
  }

  /** Must be called once for each `add`. */
  delete(slot: number): void {
    this.#all[slot] = undefined;
    this.#free.push(slot);
    if (this.#all.length <= MAX_EMPTY || this.size > 0) return;
    this.#all.length = 0;
    this.#free.length = 0;
  }

  /** Iterates in no order. Things that are added or removed meanwhile may be included or not. */
  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (const one of this.#all) if (one !== undefined) yield one;
  }
}
