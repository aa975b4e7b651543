/**
 * Blocks that are read before their turn, within what all who read may hold of such together: a
 * reader that is slow holds what was read for it, and there may be thousands of them.
 */
import { Reach, type Usual } from "./reach.ts";

/** Of all readers of the process. Beyond it each reads the block whose turn it is. */
export const MAX_AHEAD_BYTES = 64 * 1024 * 1024;
/** What a block is taken for while nobody knows better; what is said of its size may be wrong. */
const USUAL_BYTES = 256 * 1024;
const MAX_BLOCK_BYTES = 2 * 1024 * 1024;

/** Part of what all may hold that readers who reach far leave to others. */
const SHARE_OF_FAR = 1 / 2;

const UNBOUNDED: Usual = { bytes: Number.POSITIVE_INFINITY, blocks: Number.POSITIVE_INFINITY };

interface Held {
  bytes: number;
}

let all = 0;

/** What a reader holds who was left without an end. */
const left = new FinalizationRegistry<Held>((held) => {
  all -= held.bytes;
});

interface Asked<T> {
  readonly coming: T | Promise<T>;
  /** What a promise has resolved with. */
  came?: T;
  bytes: number;
}

/** What one reader has asked for ahead, by what it was asked for. */
export class Readahead<K, T> {
  readonly #asked = new Map<K, Asked<T>>();
  readonly #lengthOf: (read: T) => number;
  readonly #held: Held = { bytes: 0 };
  readonly #reach: Reach;
  /** Bytes of the longest so far. */
  #longest = 0;
  #isKnown = false;

  /** @param usual of a reader whose reach is asked for */
  constructor(lengthOf: (read: T) => number, usual = UNBOUNDED, now: () => number = () => performance.now()) {
    this.#lengthOf = lengthOf;
    this.#reach = new Reach(usual, now);
  }

  /** How many times the usual is worth asking for ahead. */
  get reach(): number {
    return all > MAX_AHEAD_BYTES * SHARE_OF_FAR ? 1 : this.#reach.times;
  }

  get size(): number {
    return this.#asked.size;
  }

  /** None has come so far, so nobody knows how long they are. */
  get isUntried(): boolean {
    return this.#longest === 0;
  }

  /** What a block is taken for; `said` is how many bytes it has, by what links to it. */
  bytesOf(said: number): number {
    return Math.max(Math.min(said, MAX_BLOCK_BYTES), this.isUntried ? USUAL_BYTES : this.#longest);
  }

  has(key: K): boolean {
    return this.#asked.has(key);
  }

  keys(): MapIterator<K> {
    return this.#asked.keys();
  }

  /** Reads it now, unless there is no room. */
  ask(key: K, said: number, read: () => T | Promise<T>): boolean {
    const bytes = this.bytesOf(said);
    if (all + bytes > MAX_AHEAD_BYTES) return false;
    const mark = this.#reach.mark();
    const coming = read();
    if (!(coming instanceof Promise)) {
      this.#hold(key, coming);
      return true;
    }
    this.#register();
    const asked: Asked<T> = { coming, bytes: 0 };
    this.#charge(asked, bytes);
    this.#asked.set(key, asked);
    coming.then(
      (value) => {
        const length = this.#lengthOf(value);
        this.#longest = Math.max(this.#longest, length, 1);
        this.#reach.came(length, mark);
        asked.came = value;
        if (this.#asked.get(key) === asked) this.#charge(asked, length);
      },
      () => {},
    );
    return true;
  }

  /** Holds what was read already, unless there is no room. */
  hold(key: K, value: T): boolean {
    if (all + this.#lengthOf(value) > MAX_AHEAD_BYTES) return false;
    this.#hold(key, value);
    return true;
  }

  /** Undefined for what has not come, or was asked for. */
  held(key: K): T | undefined {
    const coming = this.#asked.get(key)?.coming;
    return coming instanceof Promise ? undefined : coming;
  }

  /** What had to be waited for, and has come. */
  came(key: K): T | undefined {
    return this.#asked.get(key)?.came;
  }

  /** What was asked for, or is held; from now on it is the reader's own. */
  take(key: K): T | Promise<T> | undefined {
    const asked = this.#asked.get(key);
    if (asked === undefined) return undefined;
    this.#asked.delete(key);
    this.#charge(asked, 0);
    return asked.coming;
  }

  /** Nobody reads on. What was asked for, and not taken. */
  end(): (T | Promise<T>)[] {
    return [...this.#asked.keys()].map((key) => this.take(key) as T | Promise<T>);
  }

  #hold(key: K, value: T): void {
    const length = this.#lengthOf(value);
    this.#register();
    this.#longest = Math.max(this.#longest, length, 1);
    const asked: Asked<T> = { coming: value, bytes: 0 };
    this.#charge(asked, length);
    this.#asked.set(key, asked);
  }

  #register(): void {
    if (!this.#isKnown) left.register(this, this.#held);
    this.#isKnown = true;
  }

  #charge(asked: Asked<T>, bytes: number): void {
    const more = bytes - asked.bytes;
    asked.bytes = bytes;
    this.#held.bytes += more;
    all += more;
  }
}
