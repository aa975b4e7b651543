/** Numbers of segments on this host. Locations contain these numbers, because an id is long. */
import type { SegmentId } from "../log.ts";

/**
 * A number that is no longer in use is not reused until this many others are unused too, because
 * reads with the number may still be running.
 */
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

  /** Returns a number for a segment that has no id yet. */
  take(): number {
    if (this.#resting.length >= MIN_RESTING) return this.#resting.shift() as number;
    this.#next += 1;
    return this.#next - 1;
  }

  assign(id: SegmentId, number: number): void {
    this.#byId.set(id, number);
  }

  /** Returns the number of a segment; assigns a new one when it has none. */
  of(id: SegmentId): number {
    const number = this.#byId.get(id) ?? this.take();
    this.#byId.set(id, number);
    return number;
  }

  /** Returns the number of a segment; undefined when the segment is unknown. */
  find(id: SegmentId): number | undefined {
    return this.#byId.get(id);
  }

  /** Dissolves the link between number and segment; the number stays in use. */
  forget(id: SegmentId): void {
    this.#byId.delete(id);
  }

  /** Frees the number of a segment that never got an id. */
  giveBack(number: number): void {
    this.#resting.push(number);
  }

  /** Frees the number of a segment that is gone. */
  release(id: SegmentId): void {
    const number = this.#byId.get(id);
    if (number === undefined) return;
    this.#byId.delete(id);
    this.#resting.push(number);
  }
}
