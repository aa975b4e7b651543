/** Work on large inputs, done in pieces so that the event loop serves others in between. */

/** Work that may be interrupted at each `yield`. */
export type Steps<T> = Generator<void, T, undefined>;

/** Items that are worked on from one `yield` to the next. */
export const ITEMS_PER_STEP = 1024;

/** Milliseconds of work until the event loop has its turn. */
const SLICE_MS = 2;

/** All of it in one go. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const next = steps.next();
    if (next.done === true) return next.value;
  }
}

/**
 * Whoever waits for a slice. One of them has it in each turn of the event loop: others wait for one
 * slice, and not for those of all.
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
 * For work that goes on and on without waiting for anything: it gives the event loop a turn after
 * every few milliseconds.
 */
export class TimeSlices {
  #until = performance.now() + SLICE_MS;

  /** Undefined while there is time; otherwise to be awaited, which takes a turn. */
  due(): Promise<void> | undefined {
    return performance.now() < this.#until ? undefined : this.#taken();
  }

  async #taken(): Promise<void> {
    await nextSlice();
    this.#until = performance.now() + SLICE_MS;
  }
}

/** A turn of the event loop after every few milliseconds. */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (const slices = new TimeSlices(); ; ) {
    const next = steps.next();
    if (next.done === true) return next.value;
    const turn = slices.due();
    if (turn !== undefined) await turn;
  }
}

/** As `map`, in steps. */
export function* mapSteps<T, U>(items: Iterable<T>, map: (item: T) => U): Steps<U[]> {
  const mapped: U[] = [];
  for (const item of items) {
    mapped.push(map(item));
    if (mapped.length % ITEMS_PER_STEP === 0) yield;
  }
  return mapped;
}

/** Items that are sorted in one go; runs of so many are merged. */
const SORTED_AT_ONCE = 4096;

/** As `toSorted`, in steps. */
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

/** Of equal items those of `one` come first. */
function* mergedSteps<T>(one: readonly T[], other: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  const merged: T[] = [];
  for (let a = 0, b = 0; a < one.length || b < other.length; ) {
    const takesOne = b === other.length || (a < one.length && compare(one[a] as T, other[b] as T) <= 0);
    merged.push(takesOne ? (one[a++] as T) : (other[b++] as T));
    if (merged.length % ITEMS_PER_STEP === 0) yield;
  }
  return merged;
}

/** Collects text piece by piece: joining many pieces takes as long as making them. */
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
