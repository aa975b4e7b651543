/** Goes through what is stored as it lies in the segments: whoever reads all of it asks the object store for long stretches. */
import type { CID } from "multiformats/cid";
import { cidOf, type Form } from "../../blockstore/segments/format.ts";
import type { SegmentId } from "../log.ts";
import type { MergingDeps } from "./merging.ts";
import { pagesOf } from "./pages.ts";
import type { SegmentRow } from "./places.ts";

export type KeysToReadDeps = Pick<MergingDeps, "places" | "feed" | "catchUp">;

/** Blocks that are sorted at a time: each time the whole index is gone through. */
const MAX_SORTED = 200_000;

interface Found {
  readonly multihash: Uint8Array;
  readonly form: Form;
  /** The number of the segment among those that are read together. */
  readonly nth: number;
  readonly offset: number;
}

/** In the order of commits. Blocks of segments that are merged meanwhile come twice. @throws NodeError STORE_UNAVAILABLE */
export async function* keysToRead({ places, feed, catchUp }: KeysToReadDeps): AsyncGenerator<CID> {
  const seen = new Set<SegmentId>();
  for (let resets = -1; ; ) {
    await catchUp();
    // Of an index that was made anew meanwhile something may have been missing.
    if (feed.resets !== resets) seen.clear();
    ({ resets } = feed);
    const rows = [...places.rows].filter(([, { id }]) => !seen.has(id));
    if (rows.length === 0) return;
    const numbers = new Map(nextOf(rows).map(([number, { id }], nth) => [number, { id, nth }]));
    for (const { id } of numbers.values()) seen.add(id);
    const found: Found[] = [];
    for await (const page of pagesOf(places, feed, catchUp)) {
      for (const { multihash, places: all } of page) {
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

/** The oldest of these: one, or as many as can be sorted together. */
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
