/** Trees as archives (storage section 5, "dag export"). */
import type { CID } from "multiformats/cid";
import type { ReadBlock } from "../dag/reader.ts";
import { walk } from "../dag/walk.ts";
import { writeCar } from "./write.ts";

/** An archive of a block and all below it: parents before children, links in order, each block once. */
export const exportCar = (root: CID, read: ReadBlock, signal?: AbortSignal): AsyncIterable<Uint8Array> =>
  writeCar([root], blocksBelow(root, read, signal));

async function* blocksBelow(root: CID, read: ReadBlock, signal: AbortSignal | undefined) {
  for await (const { cid, bytes } of walk(root, { read, signal })) {
    if (bytes !== undefined) yield { cid, bytes };
  }
}
