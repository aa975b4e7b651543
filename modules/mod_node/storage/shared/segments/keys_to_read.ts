/** Goes through what is stored as it lies in the segments: whoever reads all of it asks the object store for long stretches. */
import type { CID } from "multiformats/cid";
import { cidOf } from "../../blockstore/segments/format.ts";
import type { SegmentId } from "../log.ts";
import { loadIndex } from "./load_index.ts";
import type { MergingDeps } from "./merging.ts";

export type KeysToReadDeps = Pick<MergingDeps, "places" | "objects" | "feed" | "onNotice" | "catchUp">;

/** In the order of commits. Blocks of segments that are merged meanwhile come twice. @throws NodeError STORE_UNAVAILABLE */
export async function* keysToRead({ places, objects, feed, onNotice, catchUp }: KeysToReadDeps): AsyncGenerator<CID> {
  const seen = new Set<SegmentId>();
  for (let resets = -1; ; ) {
    await catchUp();
    // Of an index that was made anew meanwhile something may have been missing.
    if (feed.resets !== resets) seen.clear();
    ({ resets } = feed);
    const rows = [...places.rows].filter(([, { id }]) => !seen.has(id));
    if (rows.length === 0) return;
    for (const [number, row] of rows.sort(([, one], [, other]) => one.position - other.position)) {
      seen.add(row.id);
      if (row.live === 0) continue;
      const blocks = (await loadIndex(objects, row, onNotice)).toSorted((one, other) => one.offset - other.offset);
      for (const block of blocks) if (places.isAt(number, block)) yield cidOf(block.form, block.multihash);
    }
  }
}
