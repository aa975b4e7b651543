/** Opens the blocks of a shared store on this host. */
import { join } from "node:path";
import { failure, NodeError } from "../../../util/errors.ts";
import { diskFs, withRoom } from "../../blockstore/segments/files.ts";
import { STORE_DEFAULTS } from "../defaults.ts";
import type { ObjectStore } from "../s3/objects.ts";
import { readBlockList } from "./block_lists.ts";
import { SegmentCache } from "./cache.ts";
import { PlaceFeed } from "./feed.ts";
import { loadIndex } from "./load_index.ts";
import { carKey } from "./names.ts";
import { SegmentNumbers } from "./numbers.ts";
import type { SharedBlocksOptions } from "./options.ts";
import { Places } from "./places.ts";
import { SharedBlocks } from "./store.ts";

/** @throws NodeError STORE_FULL when the folder cannot be written to, STORE_BROKEN when it cannot be read */
export async function openSharedBlocks(options: SharedBlocksOptions): Promise<SharedBlocks> {
  const { folder, objects, log, onNotice = () => {}, makeRoom } = options;
  let places: Places | undefined;
  try {
    places = await Places.open(join(folder, "index"), onNotice, makeRoom);
    // A copy of another store is of no use.
    await places.belongTo(log.store);
    if (await canBeWhole(places, objects)) {
      onNotice("the index of the blocks lacks some of segments that are there: it is made anew from the shared store");
      await places.clear();
    }
    const { rows } = places;
    const numbers = new SegmentNumbers(rows);
    const cache = await SegmentCache.open({
      folder,
      objects,
      find: (segment) => rows.get(segment),
      numberOf: (id) => numbers.find(id),
      maxBytes: options.cacheBytes ?? STORE_DEFAULTS.cacheBytes,
      fs: withRoom(diskFs, makeRoom),
    });
    let store: SharedBlocks | undefined;
    const feed = new PlaceFeed({
      places,
      numbers,
      load: (segment) => loadIndex(objects, segment, onNotice),
      readList: (list) => readBlockList(objects, list),
      onFound: (segments) => store?.found(segments),
      onDecided: (epochs) => store?.decided(epochs),
      onDropped: (segments) => {
        for (const segment of segments) cache.forget(segment);
      },
    });
    log.follow(feed);
    store = new SharedBlocks({ places, numbers, cache, feed }, options);
    return store;
  } catch (error) {
    await places?.close().catch(() => {});
    if (NodeError.is(error)) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    const isFull = ["EROFS", "EACCES", "EPERM", "ENOSPC", "EDQUOT"].includes(code ?? "");
    throw failure(isFull ? "STORE_FULL" : "STORE_BROKEN", { path: folder, reason: message }, error);
  }
}

/** Whether a segment that was missing, or damaged, is there again: what was removed of it since is said by the log alone. */
async function canBeWhole({ rows }: Places, objects: ObjectStore): Promise<boolean> {
  for (const { id, bytes, isWhole } of rows.values()) {
    if (isWhole) continue;
    // While the store is away the next start looks again.
    const found = await objects.head(carKey(id)).catch(() => undefined);
    if (found?.bytes === bytes) return true;
  }
  return false;
}
