/** Segments of this host that are about to be committed: their blocks need not be fetched. */
import type { Entry, Segment, SegmentId } from "../log.ts";
import type { IndexedBlock } from "./index_file.ts";

interface Expected {
  readonly number: number;
  readonly blocks: readonly IndexedBlock[];
  hasCome: boolean;
  isFound: boolean;
  /** Its host knows that it is committed. */
  isAnswered: boolean;
}

export class ExpectedSegments {
  readonly #byId = new Map<SegmentId, Expected>();

  has(id: SegmentId): boolean {
    return this.#byId.has(id);
  }

  add(id: SegmentId, number: number, blocks: readonly IndexedBlock[]): void {
    this.#byId.set(id, { number, blocks, hasCome: false, isFound: false, isAnswered: false });
  }

  delete(id: SegmentId): boolean {
    return this.#byId.delete(id);
  }

  blocksOf(id: SegmentId): readonly IndexedBlock[] | undefined {
    return this.#byId.get(id)?.blocks;
  }

  /** The log has this entry. */
  came(entry: Entry): void {
    for (const { id } of segmentsOf(entry)) {
      const expected = this.#byId.get(id);
      if (expected !== undefined) expected.hasCome = true;
    }
  }

  hasCome(id: SegmentId): boolean {
    return this.#byId.get(id)?.hasCome === true;
  }

  answered(id: SegmentId): void {
    const expected = this.#byId.get(id);
    if (expected === undefined) return;
    expected.isAnswered = true;
    if (expected.isFound) this.#byId.delete(id);
  }

  /** Blocks of these are found; gives the numbers of those that were expected. */
  found(ids: readonly SegmentId[]): number[] {
    const numbers: number[] = [];
    for (const id of ids) {
      const expected = this.#byId.get(id);
      if (expected === undefined || expected.isFound) continue;
      expected.isFound = true;
      numbers.push(expected.number);
      if (expected.isAnswered) this.#byId.delete(id);
    }
    return numbers;
  }
}

/** The segments that an entry brings. */
export const segmentsOf = (entry: Entry): readonly Segment[] =>
  entry.kind === "segment" ? [entry.segment] : entry.kind === "replaced" ? entry.by : [];
