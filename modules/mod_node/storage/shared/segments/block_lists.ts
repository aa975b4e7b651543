/** Lists of blocks in log entries. A short list is in the entry itself, a long one is an object. */

import { hash } from "node:crypto";
import { CID } from "multiformats/cid";
import { failure } from "../../../util/errors.ts";
import { ownBytes } from "../../../util/own_bytes.ts";
import { Varints, varints } from "../../blockstore/segments/format.ts";
import type { BlockList, SegmentId } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import { readWhole } from "./load_index.ts";
import { listKey } from "./names.ts";

/** Maximum number of CIDs in an entry. */
const MAX_INLINE_CIDS = 256;

/**
 * Writes a list. `newId` returns a different unique id for each call.
 * @throws NodeError STORE_UNAVAILABLE, SESSION_LOST
 */
export async function writeBlockList(
  objects: ObjectStore,
  cids: AsyncIterable<CID> | Iterable<CID>,
  newId: () => SegmentId,
): Promise<BlockList> {
  const listed: Uint8Array[] = [];
  for await (const { bytes } of cids) listed.push(ownBytes(bytes));
  listed.sort(Buffer.compare);
  if (listed.length <= MAX_INLINE_CIDS) return { cids: listed };
  const bytes = Buffer.concat(listed.flatMap((cid) => [varints([cid.length]), cid]));
  const sum = hash("sha256", bytes);
  for (;;) {
    const object = listKey(newId());
    // An object of somebody else must not be overwritten, so another id is tried.
    if ((await objects.putNew(object, bytes)) !== "different") return { object, count: listed.length, sum };
  }
}

/**
 * Returns the CIDs of a list.
 * @throws NodeError STORE_UNAVAILABLE
 */
export async function readBlockList(objects: ObjectStore, list: BlockList): Promise<readonly Uint8Array[]> {
  if ("cids" in list) return list.cids;
  const bytes = await readWhole(objects, list.object);
  if (bytes === undefined) {
    const reason = `${objects.name}${list.object} is missing, and the log refers to it; restore it from a backup of the bucket`;
    throw failure("STORE_UNAVAILABLE", { reason });
  }
  const isWritten = list.sum === undefined || list.sum === hash("sha256", bytes);
  const listed = isWritten ? decodeBlockList(bytes) : undefined;
  if (listed?.length === list.count) return listed;
  throw failure("STORE_UNAVAILABLE", {
    reason: `${objects.name}${list.object} is damaged, and the log refers to it; restore it from a backup of the bucket`,
  });
}

/** Decodes the CIDs of a list object; undefined when it is not a list. */
export function decodeBlockList(bytes: Uint8Array): readonly Uint8Array[] | undefined {
  const read = new Varints(bytes);
  const listed: Uint8Array[] = [];
  try {
    while (read.at < bytes.length) {
      const length = read.next();
      listed.push(bytes.subarray(read.at, (read.at += length)));
    }
  } catch {
    // The last varint is incomplete.
    return undefined;
  }
  return read.at === bytes.length ? listed : undefined;
}

export const cidsOf = (list: readonly Uint8Array[]): CID[] => list.map((bytes) => CID.decode(bytes));
