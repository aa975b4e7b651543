/** Maintains the objects of a shared store: merges, deletes and verifies them. */
import type { CID } from "multiformats/cid";
import type { SegmentRow } from "./block_index.ts";
import { keysToRead } from "./keys_to_read.ts";
import { type MergingDeps, mergeSegments } from "./merging.ts";
import { deleteOrphans, findOrphans, type SegmentFault, type VerifyOptions, verifySegments } from "./verify.ts";

export interface UpkeepMetrics {
  readonly segments: number;
  /** Bytes of their CAR files. */
  readonly bytes: number;
  /** Bytes of stored blocks in these files. */
  readonly live: number;
  /** Bytes in the disk cache of this host. */
  readonly cached: number;
}

/** Number of segments that a host writes before it checks whether some should be merged. */
const MERGE_AFTER = 64;

export class Upkeep {
  readonly #deps: MergingDeps;
  readonly #mustBeOpen: () => void;
  #merging: Promise<void> = Promise.resolve();
  /** Number of segments that this host has written since it last merged. */
  #unmerged = 0;

  constructor(deps: MergingDeps, mustBeOpen: () => void) {
    this.#deps = deps;
    this.#mustBeOpen = mustBeOpen;
  }

  /**
   * Merges segments, unless another host is merging, and deletes those that were replaced long
   * enough ago.
   */
  async merge(signal?: AbortSignal): Promise<void> {
    const check = () => {
      this.#mustBeOpen();
      signal?.throwIfAborted();
    };
    check();
    this.#unmerged = 0;
    // Runs one merge after the other.
    this.#merging = this.#merging
      .catch(() => {})
      .then(() => {
        check();
        return mergeSegments(this.#deps, check);
      });
    await this.#merging;
  }

  /** Counts segments that this host has written, and merges when there are many. */
  written(count: number): void {
    this.#unmerged += count;
    // A failed merge is left to the next one.
    if (this.#unmerged >= MERGE_AFTER) this.merge().catch(() => {});
  }

  /** Resolves when no merge is running. */
  async ended(): Promise<void> {
    await this.#merging.catch(() => {});
  }

  /**
   * Yields stored forms in the order in which they are read fastest. A form may be yielded twice.
   */
  async *keysToRead(): AsyncGenerator<CID> {
    this.#mustBeOpen();
    yield* keysToRead(this.#deps);
  }

  /** Yields differences between the object store and the log. By default, it reads every object. */
  async *verify(options?: VerifyOptions): AsyncGenerator<SegmentFault> {
    this.#mustBeOpen();
    yield* verifySegments(this.#deps, options);
  }

  /** Returns the keys of objects whose hosts ended before they committed them. */
  async orphans(signal?: AbortSignal): Promise<readonly string[]> {
    this.#mustBeOpen();
    return findOrphans(this.#deps, signal);
  }

  /** Deletes orphans and returns their keys. */
  async deleteOrphans(signal?: AbortSignal): Promise<readonly string[]> {
    this.#mustBeOpen();
    return deleteOrphans(this.#deps, signal);
  }

  async metrics(): Promise<UpkeepMetrics> {
    this.#mustBeOpen();
    await this.#deps.catchUp();
    const rows = [...this.#deps.index.rows.values()];
    const sum = (of: (row: SegmentRow) => number) => rows.reduce((total, row) => total + of(row), 0);
    return {
      segments: rows.length,
      bytes: sum(({ bytes }) => bytes),
      live: sum(({ live }) => live),
      cached: this.#deps.cache.bytes,
    };
  }
}
