/** Splits long computations so that the event loop can serve others in between. */

/** A computation that can pause at each `yield`. */
export type Steps<T> = Generator<void, T, undefined>;

/** Number of items to process between two `yield`s. */
export const ITEMS_PER_STEP = 1024;

/** Milliseconds of work between two turns of the event loop. */
const SLICE_MS = 2;

/** Runs all steps synchronously. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const next = steps.next();
    if (next.done === true) return next.value;
  }
}

/**
 * Computations that wait for their next slice. Each turn of the event loop resumes one of them, so
 * that other work waits for one slice and not for a slice of each.
 */
const waiting: (() => void)[] = [];

function nextSlice(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(giveSlice);
  });
}

function giveSlice(): void {
  const resolve = waiting.shift();
  if (waiting.length > 0) setImmediate(giveSlice);
  resolve?.();
}

/**
 * For computations that never wait for anything: gives the event loop a turn every few
 * milliseconds.
 */
export class TimeSlices {
  #until = performance.now() + SLICE_MS;

  /**
   * Undefined while there is time left; otherwise a promise to await, which gives the event loop a
   * turn.
   */
  due(): Promise<void> | undefined {
    return performance.now() < this.#until ? undefined : this.#taken();
  }

  async #taken(): Promise<void> {
    await nextSlice();
    this.#until = performance.now() + SLICE_MS;
  }
}

/** Runs the steps and gives the event loop a turn every few milliseconds. */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (const slices = new TimeSlices(); ; ) {
    const next = steps.next();
    if (next.done === true) return next.value;
    const turn = slices.due();
    if (turn !== undefined) await turn;
  }
}

/** Like `Array.prototype.map`, in steps. */
export function* mapSteps<T, U>(items: Iterable<T>, map: (item: T) => U): Steps<U[]> {
  const mapped: U[] = [];
  for (const item of items) {
    mapped.push(map(item));
    if (mapped.length % ITEMS_PER_STEP === 0) yield;
  }
  return mapped;
}

/**
 * Number of items to sort synchronously; larger arrays are sorted in runs of this size, which are
 * then merged.
 */
const SORTED_AT_ONCE = 4096;

/** Like `Array.prototype.toSorted`, in steps. */
export function* sortedSteps<T>(items: readonly T[], compare: (one: T, other: T) => number): Steps<T[]> {
  if (items.length <= SORTED_AT_ONCE) return items.toSorted(compare);
  let runs: T[][] = [];
  for (let at = 0; at < items.length; at += SORTED_AT_ONCE) {
    runs.push(items.slice(at, at + SORTED_AT_ONCE).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const merged: T[][] = [];
    for (let at = 0; at < runs.length; at += 2) {
      const one = runs[at] as T[];
      const other = runs[at + 1];
      merged.push(other === undefined ? one : yield* mergedSteps(one, other, compare));
    }
    runs = merged;
  }
  return runs[0] as T[];
}

/** Merges two sorted arrays. Equal items of `one` come before those of `other`. */
function* mergedSteps<T>(one: readonly T[], other: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  const merged: T[] = [];
  for (let a = 0, b = 0; a < one.length || b < other.length; ) {
    const takesOne = b === other.length || (a < one.length && compare(one[a] as T, other[b] as T) <= 0);
    merged.push(takesOne ? (one[a++] as T) : (other[b++] as T));
    if (merged.length % ITEMS_PER_STEP === 0) yield;
  }
  return merged;
}

/**
 * Collects text piece by piece. It joins the pieces from time to time, because joining many at once
 * takes as long as making them.
 */
export class TextCollector {
  #pieces: string[] = [];
  #text = "";

  push(...pieces: readonly string[]): void {
    for (const piece of pieces) this.#pieces.push(piece);
    if (this.#pieces.length < ITEMS_PER_STEP) return;
    this.#text += this.#pieces.join("");
    this.#pieces = [];
  }

  get text(): string {
    return this.#text + this.#pieces.join("");
  }
}
