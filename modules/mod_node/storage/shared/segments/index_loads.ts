/** Indices of segments as they are fetched for the index of this host: some ahead of what is at work. */
import type { Commit, Segment } from "../log.ts";
import { type ExpectedSegments, segmentsOf } from "./expected_segments.ts";
import type { IndexedBlock } from "./index_file.ts";

/** Commits whose segments' indices are fetched ahead, and after how many blocks of these that ends. */
const MAX_AHEAD = 8;
const MAX_AHEAD_BLOCKS = 64 * 1024;

export class IndexLoads {
  readonly #load: (segment: Segment) => Promise<readonly IndexedBlock[]>;
  readonly #expected: ExpectedSegments;
  /** As long as their commits are held. */
  readonly #loads = new WeakMap<Segment, Promise<readonly IndexedBlock[]>>();

  constructor(load: (segment: Segment) => Promise<readonly IndexedBlock[]>, expected: ExpectedSegments) {
    this.#load = load;
    this.#expected = expected;
  }

  async blocksOf(segment: Segment): Promise<readonly IndexedBlock[]> {
    return this.#expected.blocksOf(segment.id) ?? this.#get(segment);
  }

  /** Begins to fetch what is large, for the step at `from` and a few after it. */
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

  /** It is not needed for a while. */
  drop(segment: Segment): void {
    this.#loads.delete(segment);
  }

  #get(segment: Segment): Promise<readonly IndexedBlock[]> {
    const known = this.#loads.get(segment);
    if (known !== undefined) return known;
    const loading = this.#load(segment);
    // Whoever fails is loaded anew.
    loading.catch(() => this.#loads.delete(segment));
    this.#loads.set(segment, loading);
    return loading;
  }
}
