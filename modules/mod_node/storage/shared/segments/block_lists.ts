/** Lists of blocks in entries of the log: in the entry itself, or as an object where they are many. */
import { hash } from "node:crypto";
import { CID } from "multiformats/cid";
import { failure } from "../../../util/errors.ts";
import { Varints, varints } from "../../blockstore/segments/format.ts";
import type { BlockList } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import { readWhole } from "./load_index.ts";

/** CIDs that an entry holds itself. */
const MAX_INLINE_CIDS = 256;

/** @throws NodeError STORE_UNAVAILABLE */
export async function writeBlockList(
  objects: ObjectStore,
  cids: AsyncIterable<CID> | Iterable<CID>,
): Promise<BlockList> {
  const listed: Uint8Array[] = [];
  for await (const { bytes } of cids) listed.push(bytes.slice());
  listed.sort(Buffer.compare);
  if (listed.length <= MAX_INLINE_CIDS) return { cids: listed };
  const bytes = Buffer.concat(listed.flatMap((cid) => [varints([cid.length]), cid]));
  const sum = hash("sha256", bytes);
  const object = `${sum.slice(0, 2)}/${sum}.cids`;
  // The same list may have been written before.
  await objects.putNew(object, bytes);
  return { object, count: listed.length };
}

/** @throws NodeError STORE_UNAVAILABLE */
export async function readBlockList(objects: ObjectStore, list: BlockList): Promise<readonly Uint8Array[]> {
  if ("cids" in list) return list.cids;
  const bytes = await readWhole(objects, list.object);
  if (bytes === undefined) {
    const reason = `${objects.name}${list.object} is missing, which the log refers to; put it back from a backup of the bucket`;
    throw failure("STORE_UNAVAILABLE", { reason });
  }
  const read = new Varints(bytes);
  return Array.from({ length: list.count }, () => {
    const length = read.next();
    return bytes.subarray(read.at, (read.at += length));
  });
}

export const cidsOf = (list: readonly Uint8Array[]): CID[] => list.map((bytes) => CID.decode(bytes));
