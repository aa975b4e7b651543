/**
 * Checks whether the listed copy of a block is intact, for callers that store the block and have
 * its bytes.
 */

import type { BytesLocation } from "../../blockstore/segments/format.ts";
import type { Notice } from "../../lmdb/open.ts";
import type { ObjectStore } from "../s3/objects.ts";
import type { SegmentRow } from "./block_index.ts";
import { carKey } from "./names.ts";
import { isLost } from "./stored_segments.ts";

export interface ListedCopiesDeps {
  readonly objects: ObjectStore;
  readonly find: (segment: number) => SegmentRow | undefined;
  /** Compares the bytes with those that this host reads at the location. */
  readonly holds: (location: BytesLocation, bytes: Uint8Array) => boolean | Promise<boolean>;
  readonly onNotice: Notice;
  /** The current time in milliseconds. */
  readonly now?: (() => number) | undefined;
}

/** Milliseconds for which an object that existed is assumed to exist. */
const SEEN_MS = 2000;
const MAX_SEEN = 4096;
const MAX_DAMAGED = 65_536;

/**
 * Checks both the object and the bytes. The disk cache says nothing about the object store, from
 * which other hosts read, so the segment's object is looked up there, once for many blocks. The
 * bytes are compared with those that this host reads, from its cache if possible.
 */
export class ListedCopies {
  readonly #deps: ListedCopiesDeps;
  /** Whether the object exists, by the id of the segment. */
  readonly #seen = new Map<string, { readonly at: number; readonly isThere: Promise<boolean> }>();
  /** Copies that a read has found to be damaged or lost: the next put does not rely on them. */
  readonly #damaged = new Set<string>();
  readonly #reported = new Set<string>();

  constructor(deps: ListedCopiesDeps) {
    this.#deps = deps;
  }

  /**
   * Records that a read, or a check that bypasses the cache, found no bytes or wrong ones there.
   */
  markDamaged(location: BytesLocation): void {
    const row = this.#deps.find(location.segment);
    if (row === undefined) return;
    this.#seen.delete(row.id);
    this.#damaged.add(keyOf(row, location));
    const [oldest] = this.#damaged;
    if (this.#damaged.size > MAX_DAMAGED && oldest !== undefined) this.#damaged.delete(oldest);
  }

  /** @throws NodeError STORE_UNAVAILABLE when the copy cannot be checked */
  async isWhole(location: BytesLocation, bytes: Uint8Array): Promise<boolean> {
    const row = this.#deps.find(location.segment);
    if (row === undefined || this.#damaged.has(keyOf(row, location)) || !(await this.#isThere(row))) return false;
    try {
      return await this.#deps.holds(location, bytes);
    } catch (error) {
      if (!isLost(error)) throw error;
      this.#seen.delete(row.id);
      return false;
    }
  }

  /** Records that the block is stored again. */
  reportRepair({ segment }: BytesLocation): void {
    const row = this.#deps.find(segment);
    if (row === undefined || this.#reported.has(row.id)) return;
    this.#reported.add(row.id);
    const name = `${this.#deps.objects.name}${carKey(row.id)}`;
    this.#deps.onNotice(`${name} is lost or damaged: blocks of it that are added again are stored in another segment`);
  }

  #isThere(row: SegmentRow): Promise<boolean> {
    const { objects, now = performance.now.bind(performance) } = this.#deps;
    const seen = this.#seen.get(row.id);
    if (seen !== undefined && now() - seen.at < SEEN_MS) return seen.isThere;
    const isThere = objects.head(carKey(row.id)).then((facts) => facts?.bytes === row.bytes);
    isThere.catch(() => this.#seen.delete(row.id));
    this.#seen.delete(row.id);
    this.#seen.set(row.id, { at: now(), isThere });
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > MAX_SEEN && oldest !== undefined) this.#seen.delete(oldest);
    return isThere;
  }
}

const keyOf = ({ id }: SegmentRow, { offset }: BytesLocation): string => `${id} ${offset}`;
