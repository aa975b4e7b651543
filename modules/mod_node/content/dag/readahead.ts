/**
 * Reads blocks ahead of their use. All readers of the process share one limit, because there may be
 * thousands of them, and the blocks of a slow reader stay in memory.
 */
import { Reach, type ReadaheadAmount } from "./reach.ts";

/** Limit of all readers of the process. Beyond it each reads only the block that it needs next. */
export const MAX_AHEAD_BYTES = 64 * 1024 * 1024;
/** Assumed size of a block while no block has arrived. Sizes that links claim may be wrong. */
const USUAL_BYTES = 256 * 1024;
const MAX_BLOCK_BYTES = 2 * 1024 * 1024;

/**
 * Part of the limit. When it is used up, readers no longer read further ahead than the base amount.
 */
const SHARE_OF_FAR = 1 / 2;

const UNBOUNDED: ReadaheadAmount = { bytes: Number.POSITIVE_INFINITY, blocks: Number.POSITIVE_INFINITY };

interface ReadaheadBytes {
  bytes: number;
}

let allBytes = 0;

/** Subtracts the bytes of readers that were dropped without `end`. */
const abandoned = new FinalizationRegistry<ReadaheadBytes>((bytesLeft) => {
  allBytes -= bytesLeft.bytes;
});

interface PendingRead<T> {
  readonly coming: T | Promise<T>;
  /** The value that `coming` has resolved to, if it is a promise. */
  value?: T;
  bytes: number;
}

/** The values that one reader has requested ahead, by key. */
export class Readahead<K, T> {
  readonly #pending = new Map<K, PendingRead<T>>();
  readonly #lengthOf: (read: T) => number;
  readonly #bytes: ReadaheadBytes = { bytes: 0 };
  readonly #reach: Reach;
  /** Size of the largest value so far, in bytes. */
  #longest = 0;
  #isRegistered = false;

  /** @param base base amount, if the reader uses `reach` */
  constructor(lengthOf: (read: T) => number, base = UNBOUNDED, now: () => number = () => performance.now()) {
    this.#lengthOf = lengthOf;
    this.#reach = new Reach(base, now);
  }

  /** Multiple of the base amount that is worth requesting ahead. */
  get reach(): number {
    return allBytes > MAX_AHEAD_BYTES * SHARE_OF_FAR ? 1 : this.#reach.times;
  }

  get size(): number {
    return this.#pending.size;
  }

  /** Whether no value has arrived so far, so that the sizes are unknown. */
  get isUntried(): boolean {
    return this.#longest === 0;
  }

  /** Returns the expected size of a block. `claimed` is the size according to the link to it. */
  bytesOf(claimed: number): number {
    return Math.max(Math.min(claimed, MAX_BLOCK_BYTES), this.isUntried ? USUAL_BYTES : this.#longest);
  }

  has(key: K): boolean {
    return this.#pending.has(key);
  }

  keys(): MapIterator<K> {
    return this.#pending.keys();
  }

  /** Starts to read a value. Returns false if there is no room. */
  request(key: K, claimed: number, read: () => T | Promise<T>): boolean {
    const bytes = this.bytesOf(claimed);
    if (allBytes + bytes > MAX_AHEAD_BYTES) return false;
    const mark = this.#reach.mark();
    const coming = read();
    if (!(coming instanceof Promise)) {
      this.#add(key, coming);
      return true;
    }
    this.#register();
    const pending: PendingRead<T> = { coming, bytes: 0 };
    this.#charge(pending, bytes);
    this.#pending.set(key, pending);
    coming.then(
      (value) => {
        const length = this.#lengthOf(value);
        this.#longest = Math.max(this.#longest, length, 1);
        this.#reach.received(length, mark);
        pending.value = value;
        if (this.#pending.get(key) === pending) this.#charge(pending, length);
      },
      () => {},
    );
    return true;
  }

  /** Adds a value that was already read. Returns false if there is no room. */
  add(key: K, value: T): boolean {
    if (allBytes + this.#lengthOf(value) > MAX_AHEAD_BYTES) return false;
    this.#add(key, value);
    return true;
  }

  /** Returns a value that needed no waiting; otherwise undefined. */
  atHand(key: K): T | undefined {
    const coming = this.#pending.get(key)?.coming;
    return coming instanceof Promise ? undefined : coming;
  }

  /** Returns a value that needed waiting and has arrived; otherwise undefined. */
  received(key: K): T | undefined {
    return this.#pending.get(key)?.value;
  }

  /** Removes a value and returns it. From now on it counts as the reader's own. */
  take(key: K): T | Promise<T> | undefined {
    const pending = this.#pending.get(key);
    if (pending === undefined) return undefined;
    this.#pending.delete(key);
    this.#charge(pending, 0);
    return pending.coming;
  }

  /** To be called when the reader stops. Returns the values that were requested and not taken. */
  end(): (T | Promise<T>)[] {
    return [...this.#pending.keys()].map((key) => this.take(key) as T | Promise<T>);
  }

  #add(key: K, value: T): void {
    const length = this.#lengthOf(value);
    this.#register();
    this.#longest = Math.max(this.#longest, length, 1);
    const pending: PendingRead<T> = { coming: value, bytes: 0 };
    this.#charge(pending, length);
    this.#pending.set(key, pending);
  }

  #register(): void {
    if (!this.#isRegistered) abandoned.register(this, this.#bytes);
    this.#isRegistered = true;
  }

  #charge(pending: PendingRead<T>, bytes: number): void {
    const more = bytes - pending.bytes;
    pending.bytes = bytes;
    this.#bytes.bytes += more;
    allBytes += more;
  }
}
