/** Iterates over the whole index of a store while it changes. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { BlockIndex, IndexedLocation } from "./block_index.ts";
import type { IndexFeed } from "./index_feed.ts";

const PAGE = 512;

type Page = readonly { readonly multihash: Uint8Array; readonly locations: readonly IndexedLocation[] }[];

/**
 * Yields the index in the order of multihashes, each of them once. `catchUp` updates the index to
 * everything that any host has committed.
 */
export async function* pagesOf(index: BlockIndex, feed: IndexFeed, catchUp: () => Promise<void>): AsyncGenerator<Page> {
  let resets = -1;
  for (let after: Uint8Array | undefined; ; ) {
    await nextTurn();
    // If the index was cleared since the last page, it lacks entries until it has been rebuilt.
    if (feed.resets !== resets) await catchUp();
    ({ resets } = feed);
    const page = index.page(after, PAGE);
    after = page.at(-1)?.multihash;
    if (after === undefined) return;
    yield page;
  }
}
