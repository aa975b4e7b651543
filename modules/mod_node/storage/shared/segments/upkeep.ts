/** What keeps the objects of a shared store in order: merging, deleting, verifying. */
import type { CID } from "multiformats/cid";
import { keysToRead } from "./keys_to_read.ts";
import { type MergingDeps, mergeSegments } from "./merging.ts";
import type { SegmentRow } from "./places.ts";
import { deleteOrphans, findOrphans, type SegmentFault, type VerifyOptions, verifySegments } from "./verify.ts";

export interface UpkeepFigures {
  readonly segments: number;
  /** Of their CAR files. */
  readonly bytes: number;
  /** Of those, what stored blocks take. */
  readonly live: number;
  /** In the disk cache of this host. */
  readonly cached: number;
}

/** Segments that a host writes before it looks whether any are to be merged. */
const MERGE_AFTER = 64;

export class Upkeep {
  readonly #deps: MergingDeps;
  readonly #mustBeOpen: () => void;
  #merging: Promise<void> = Promise.resolve();
  /** Segments of this host since it last merged. */
  #unmerged = 0;

  constructor(deps: MergingDeps, mustBeOpen: () => void) {
    this.#deps = deps;
    this.#mustBeOpen = mustBeOpen;
  }

  /** Merges segments, unless another host is at it, and deletes those that were replaced long enough ago. */
  async merge(signal?: AbortSignal): Promise<void> {
    const check = () => {
      this.#mustBeOpen();
      signal?.throwIfAborted();
    };
    check();
    this.#unmerged = 0;
    // One after the other.
    this.#merging = this.#merging
      .catch(() => {})
      .then(() => {
        check();
        return mergeSegments(this.#deps, check);
      });
    await this.#merging;
  }

  /** This host has written segments; when they are many, some are merged. */
  written(count: number): void {
    this.#unmerged += count;
    // What it leaves undone the next one does.
    if (this.#unmerged >= MERGE_AFTER) this.merge().catch(() => {});
  }

  /** Resolves when nothing is being merged. */
  async ended(): Promise<void> {
    await this.#merging.catch(() => {});
  }

  /** Stored forms, in the order in which they are read fastest; a form may come twice. */
  async *keysToRead(): AsyncGenerator<CID> {
    this.#mustBeOpen();
    yield* keysToRead(this.#deps);
  }

  /** What of the object store does not fit what the log lists; by default every object is read. */
  async *verify(options?: VerifyOptions): AsyncGenerator<SegmentFault> {
    this.#mustBeOpen();
    yield* verifySegments(this.#deps, options);
  }

  /** Keys of objects that hosts left behind that ended before they told of them. */
  async orphans(signal?: AbortSignal): Promise<readonly string[]> {
    this.#mustBeOpen();
    return findOrphans(this.#deps, signal);
  }

  /** Deletes those, and gives their keys. */
  async deleteOrphans(signal?: AbortSignal): Promise<readonly string[]> {
    this.#mustBeOpen();
    return deleteOrphans(this.#deps, signal);
  }

  async figures(): Promise<UpkeepFigures> {
    this.#mustBeOpen();
    await this.#deps.catchUp();
    const rows = [...this.#deps.places.rows.values()];
    const sum = (of: (row: SegmentRow) => number) => rows.reduce((total, row) => total + of(row), 0);
    return {
      segments: rows.length,
      bytes: sum(({ bytes }) => bytes),
      live: sum(({ live }) => live),
      cached: this.#deps.cache.bytes,
    };
  }
}
