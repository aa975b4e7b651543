/**
 * Lists all stored blocks in the order of the segments, so that a reader of all blocks requests
 * long ranges from the object store.
 */
import type { CID } from "multiformats/cid";
import { cidOf, type Form } from "../../blockstore/segments/format.ts";
import type { SegmentId } from "../log.ts";
import type { SegmentRow } from "./block_index.ts";
import type { MergingDeps } from "./merging.ts";
import { pagesOf } from "./pages.ts";

export type KeysToReadDeps = Pick<MergingDeps, "index" | "feed" | "catchUp">;

/**
 * Maximum number of blocks that are sorted together. Each group needs a pass over the whole index.
 */
const MAX_SORTED = 200_000;

interface Found {
  readonly multihash: Uint8Array;
  readonly form: Form;
  /** The number of the segment in its group. */
  readonly nth: number;
  readonly offset: number;
}

/**
 * Yields all blocks in the order of commits. Blocks of segments that are merged in the meantime may
 * be yielded twice.
 * @throws NodeError STORE_UNAVAILABLE
 */
export async function* keysToRead({ index, feed, catchUp }: KeysToReadDeps): AsyncGenerator<CID> {
  const seen = new Set<SegmentId>();
  for (let resets = -1; ; ) {
    await catchUp();
    // An index that was rebuilt in the meantime may have been incomplete.
    if (feed.resets !== resets) seen.clear();
    ({ resets } = feed);
    const rows = [...index.rows].filter(([, { id }]) => !seen.has(id));
    if (rows.length === 0) return;
    const numbers = new Map(nextOf(rows).map(([number, { id }], nth) => [number, { id, nth }]));
    for (const { id } of numbers.values()) seen.add(id);
    const found: Found[] = [];
    for await (const page of pagesOf(index, feed, catchUp)) {
      for (const { multihash, locations: all } of page) {
        for (const { form, segment, offset } of all) {
          const nth = numbers.get(segment)?.nth;
          if (nth !== undefined) found.push({ multihash: Uint8Array.from(multihash), form, nth, offset });
        }
      }
    }
    found.sort((one, other) => one.nth - other.nth || one.offset - other.offset);
    for (const { form, multihash } of found) yield cidOf(form, multihash);
  }
}

/** Returns the oldest segments: one, or as many as can be sorted together. */
function nextOf(rows: readonly (readonly [number, SegmentRow])[]): (readonly [number, SegmentRow])[] {
  const inOrder = rows.toSorted(([, one], [, other]) => one.position - other.position);
  const next = [];
  let blocks = 0;
  for (const row of inOrder) {
    blocks += row[1].blocks;
    if (next.length > 0 && blocks > MAX_SORTED) break;
    next.push(row);
  }
  return next;
}
