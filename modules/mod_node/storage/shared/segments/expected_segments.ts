/** Segments that this host is about to commit: their blocks need not be fetched. */
import type { Entry, Segment, SegmentId } from "../log.ts";
import type { IndexedBlock } from "./index_file.ts";

interface Expected {
  readonly number: number;
  readonly blocks: readonly IndexedBlock[];
  hasArrived: boolean;
  isFound: boolean;
  /** Whether the host knows that the segment is committed. */
  isConfirmed: boolean;
}

export class ExpectedSegments {
  readonly #byId = new Map<SegmentId, Expected>();

  has(id: SegmentId): boolean {
    return this.#byId.has(id);
  }

  add(id: SegmentId, number: number, blocks: readonly IndexedBlock[]): void {
    this.#byId.set(id, { number, blocks, hasArrived: false, isFound: false, isConfirmed: false });
  }

  delete(id: SegmentId): boolean {
    return this.#byId.delete(id);
  }

  blocksOf(id: SegmentId): readonly IndexedBlock[] | undefined {
    return this.#byId.get(id)?.blocks;
  }

  /** Records that the log contains this entry. */
  arrived(entry: Entry): void {
    for (const { id } of segmentsOf(entry)) {
      const expected = this.#byId.get(id);
      if (expected !== undefined) expected.hasArrived = true;
    }
  }

  hasArrived(id: SegmentId): boolean {
    return this.#byId.get(id)?.hasArrived === true;
  }

  confirmed(id: SegmentId): void {
    const expected = this.#byId.get(id);
    if (expected === undefined) return;
    expected.isConfirmed = true;
    if (expected.isFound) this.#byId.delete(id);
  }

  /**
   * Records that the blocks of these segments can be found, and returns the numbers of expected
   * ones.
   */
  found(ids: readonly SegmentId[]): number[] {
    const numbers: number[] = [];
    for (const id of ids) {
      const expected = this.#byId.get(id);
      if (expected === undefined || expected.isFound) continue;
      expected.isFound = true;
      numbers.push(expected.number);
      if (expected.isConfirmed) this.#byId.delete(id);
    }
    return numbers;
  }
}

/** Returns the segments that an entry adds. */
export const segmentsOf = (entry: Entry): readonly Segment[] =>
  entry.kind === "segment" ? [entry.segment] : entry.kind === "replaced" ? entry.by : [];
