/** Lists of blocks in entries of the log: in the entry itself, or as an object where they are many. */

import { hash } from "node:crypto";
import { CID } from "multiformats/cid";
import { failure } from "../../../util/errors.ts";
import { ownBytes } from "../../../util/own_bytes.ts";
import { Varints, varints } from "../../blockstore/segments/format.ts";
import type { BlockList, SegmentId } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import { readWhole } from "./load_index.ts";
import { listKey } from "./names.ts";

/** CIDs that an entry holds itself. */
const MAX_INLINE_CIDS = 256;

/** `newId` gives an id that nothing else has, each time another. @throws NodeError STORE_UNAVAILABLE, SESSION_LOST */
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
    // Somebody else's object is left alone.
    if ((await objects.putNew(object, bytes)) !== "different") return { object, count: listed.length, sum };
  }
}

/** @throws NodeError STORE_UNAVAILABLE */
export async function readBlockList(objects: ObjectStore, list: BlockList): Promise<readonly Uint8Array[]> {
  if ("cids" in list) return list.cids;
  const bytes = await readWhole(objects, list.object);
  if (bytes === undefined) {
    const reason = `${objects.name}${list.object} is missing, which the log refers to; put it back from a backup of the bucket`;
    throw failure("STORE_UNAVAILABLE", { reason });
  }
  const isWritten = list.sum === undefined || list.sum === hash("sha256", bytes);
  const listed = isWritten ? decodeBlockList(bytes) : undefined;
  if (listed?.length === list.count) return listed;
  throw failure("STORE_UNAVAILABLE", {
    reason: `${objects.name}${list.object} is damaged, which the log refers to; put it back from a backup of the bucket`,
  });
}

/** The CIDs of such an object, as bytes; undefined where it is none. */
export function decodeBlockList(bytes: Uint8Array): readonly Uint8Array[] | undefined {
  const read = new Varints(bytes);
  const listed: Uint8Array[] = [];
  try {
    while (read.at < bytes.length) {
      const length = read.next();
      listed.push(bytes.subarray(read.at, (read.at += length)));
    }
  } catch {
    // A number that does not end.
    return undefined;
  }
  return read.at === bytes.length ? listed : undefined;
}

export const cidsOf = (list: readonly Uint8Array[]): CID[] => list.map((bytes) => CID.decode(bytes));
