/** Numbers that segments have on this host: places name those, since an id is long. */
import type { SegmentId } from "../log.ts";

/** Numbers that are no longer in use wait for as many others before they are given again: reads of them may be under way. */
const MIN_RESTING = 4096;

export class SegmentNumbers {
  readonly #byId = new Map<SegmentId, number>();
  readonly #resting: number[] = [];
  #next = 1;

  constructor(known: Iterable<readonly [number, { readonly id: SegmentId }]>) {
    const used = new Set<number>();
    for (const [number, { id }] of known) {
      this.#byId.set(id, number);
      used.add(number);
      this.#next = Math.max(this.#next, number + 1);
    }
    for (let number = 1; number < this.#next; number += 1) if (!used.has(number)) this.#resting.push(number);
  }

  /** A number for a segment that has no id yet. */
  take(): number {
    if (this.#resting.length >= MIN_RESTING) return this.#resting.shift() as number;
    this.#next += 1;
    return this.#next - 1;
  }

  assign(id: SegmentId, number: number): void {
    this.#byId.set(id, number);
  }

  /** The number of a segment, a new one when it has none. */
  of(id: SegmentId): number {
    const number = this.#byId.get(id) ?? this.take();
    this.#byId.set(id, number);
    return number;
  }

  /** Undefined for a segment that is not known. */
  find(id: SegmentId): number | undefined {
    return this.#byId.get(id);
  }

  /** The number is no longer that of this segment; it stays in use. */
  forget(id: SegmentId): void {
    this.#byId.delete(id);
  }

  /** Nothing came of a segment without an id. */
  giveBack(number: number): void {
    this.#resting.push(number);
  }

  /** The segment is gone. */
  release(id: SegmentId): void {
    const number = this.#byId.get(id);
    if (number === undefined) return;
    this.#byId.delete(id);
    this.#resting.push(number);
  }
}
