/** Loads segment indices for the index of this host, some of them ahead of their use. */
import type { Commit, Segment } from "../log.ts";
import { type ExpectedSegments, segmentsOf } from "./expected_segments.ts";
import type { IndexedBlock } from "./index_file.ts";

/** Maximum number of commits, and of blocks in them, whose segment indices are loaded ahead. */
const MAX_AHEAD = 8;
const MAX_AHEAD_BLOCKS = 64 * 1024;

export class IndexLoads {
  readonly #load: (segment: Segment) => Promise<readonly IndexedBlock[]>;
  readonly #expected: ExpectedSegments;
  /** Loads by segment, as long as the commit with the segment is in memory. */
  readonly #loads = new WeakMap<Segment, Promise<readonly IndexedBlock[]>>();

  constructor(load: (segment: Segment) => Promise<readonly IndexedBlock[]>, expected: ExpectedSegments) {
    this.#load = load;
    this.#expected = expected;
  }

  async blocksOf(segment: Segment): Promise<readonly IndexedBlock[]> {
    return this.#expected.blocksOf(segment.id) ?? this.#get(segment);
  }

  /** Starts loading large indices for the step at `from` and a few steps after it. */
  ahead(steps: readonly { readonly commit: Commit | undefined }[], from: number): void {
    let blocks = 0;
    for (const { commit } of steps.slice(from, from + MAX_AHEAD)) {
      for (const segment of (commit?.entries ?? []).flatMap(segmentsOf)) {
        if (segment.index !== undefined || this.#expected.has(segment.id)) continue;
        if (blocks >= MAX_AHEAD_BLOCKS) return;
        blocks += segment.blocks;
        void this.#get(segment);
      }
    }
  }

  /** Forgets an index that is not needed for a while. */
  drop(segment: Segment): void {
    this.#loads.delete(segment);
  }

  #get(segment: Segment): Promise<readonly IndexedBlock[]> {
    const known = this.#loads.get(segment);
    if (known !== undefined) return known;
    const loading = this.#load(segment);
    // A failed load is tried again by the next caller.
    loading.catch(() => this.#loads.delete(segment));
    this.#loads.set(segment, loading);
    return loading;
  }
}
