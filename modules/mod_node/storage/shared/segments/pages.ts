/** Goes through the whole index of a store, while it changes. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { PlaceFeed } from "./feed.ts";
import type { Place, Places } from "./places.ts";

const PAGE = 512;

type Page = readonly { readonly multihash: Uint8Array; readonly places: readonly Place[] }[];

/** In the order of the multihashes, each once. `catchUp` brings the index up to everything that was committed anywhere. */
export async function* pagesOf(places: Places, feed: PlaceFeed, catchUp: () => Promise<void>): AsyncGenerator<Page> {
  let resets = -1;
  for (let after: Uint8Array | undefined; ; ) {
    await nextTurn();
    // An index that is being made anew lacks what comes next.
    if (feed.resets !== resets) await catchUp();
    ({ resets } = feed);
    const page = places.page(after, PAGE);
    after = page.at(-1)?.multihash;
    if (after === undefined) return;
    yield page;
  }
}
