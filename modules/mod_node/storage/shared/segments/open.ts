/** Opens the blocks of a shared store on this host. */
import { join } from "node:path";
import { failure, NodeError } from "../../../util/errors.ts";
import { diskFs, withRoom } from "../../blockstore/segments/files.ts";
import { STORE_DEFAULTS } from "../defaults.ts";
import type { ObjectStore } from "../s3/objects.ts";
import { BlockIndex } from "./block_index.ts";
import { readBlockList } from "./block_lists.ts";
import { SegmentCache } from "./cache.ts";
import { IndexFeed } from "./index_feed.ts";
import { loadIndex } from "./load_index.ts";
import { carKey } from "./names.ts";
import { SegmentNumbers } from "./numbers.ts";
import type { SharedBlocksOptions } from "./options.ts";
import { SharedBlocks } from "./store.ts";

/**
 * Opens the index, the cache and the feed.
 * @throws NodeError STORE_FULL when the folder cannot be written, STORE_BROKEN when it cannot be
 * read
 */
export async function openSharedBlocks(options: SharedBlocksOptions): Promise<SharedBlocks> {
  const { folder, objects, log, onNotice = () => {}, makeRoom } = options;
  let index: BlockIndex | undefined;
  try {
    index = await BlockIndex.open(join(folder, "index"), onNotice, makeRoom);
    // If the index is of another store, it is cleared.
    await index.belongTo(log.store);
    if (await canBeWhole(index, objects)) {
      onNotice("the index lacks blocks of segments that exist again: rebuilding it from the shared store");
      await index.clear();
    }
    const { rows } = index;
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
    const feed = new IndexFeed({
      index,
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
    store = new SharedBlocks({ index, numbers, cache, feed }, options);
    return store;
  } catch (error) {
    await index?.close().catch(() => {});
    if (NodeError.is(error)) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    const isFull = ["EROFS", "EACCES", "EPERM", "ENOSPC", "EDQUOT"].includes(code ?? "");
    throw failure(isFull ? "STORE_FULL" : "STORE_BROKEN", { path: folder, reason: message }, error);
  }
}

/**
 * Whether a segment that was missing or damaged is intact again. Only the log knows which of its
 * blocks were removed since, so the index must be rebuilt.
 */
async function canBeWhole({ rows }: BlockIndex, objects: ObjectStore): Promise<boolean> {
  for (const { id, bytes, isWhole } of rows.values()) {
    if (isWhole) continue;
    // While the store is unreachable, the check is left to the next start.
    const found = await objects.head(carKey(id)).catch(() => undefined);
    if (found?.bytes === bytes) return true;
  }
  return false;
}
