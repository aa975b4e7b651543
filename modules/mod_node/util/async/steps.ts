/** Work on large inputs, done in pieces so that the event loop serves others in between. */
import { setImmediate as nextTurn } from "node:timers/promises";

/** Work that may be interrupted at each `yield`. */
export type Steps<T> = Generator<void, T, undefined>;

/** Items that are worked on from one `yield` to the next. */
export const ITEMS_PER_STEP = 1024;

/** Milliseconds of work until the event loop has its turn. */
const SLICE_MS = 5;

/** All of it in one go. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const next = steps.next();
    if (next.done === true) return next.value;
  }
}

/** A turn of the event loop after every few milliseconds. */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (let until = performance.now() + SLICE_MS; ; ) {
    const next = steps.next();
    if (next.done === true) return next.value;
    if (performance.now() < until) continue;
    await nextTurn();
    until = performance.now() + SLICE_MS;
  }
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
