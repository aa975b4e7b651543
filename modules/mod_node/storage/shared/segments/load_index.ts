/** Reads the index of a segment: from the log, its own object, or the CAR file itself. */

import { readUpTo } from "../../../util/async/read_all.ts";
import { ownBytes } from "../../../util/own_bytes.ts";
import { segmentHeader } from "../../blockstore/segments/format.ts";
import { SectionReader } from "../../blockstore/segments/section_reader.ts";
import type { Notice } from "../../lmdb/open.ts";
import type { Segment } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import { decodeIndex, type IndexedBlock, isOfWhole } from "./index_file.ts";
import { carKey, indexKey } from "./names.ts";
import { isLost, storedFile } from "./stored_segments.ts";

/**
 * Loads the index of a segment. Returns an empty list when neither object exists. The segment may
 * have been merged, as a later log entry says; or its objects are lost or not uploaded yet, which
 * `onNotice` reports. For a damaged or truncated CAR file, returns the blocks before the damage.
 *
 * @throws NodeError STORE_UNAVAILABLE
 */
export async function loadIndex(
  objects: ObjectStore,
  segment: Segment,
  onNotice: Notice,
): Promise<readonly IndexedBlock[]> {
  const inline = segment.index && decodeIndex(segment.index, segment);
  if (inline !== undefined) return inline;
  const key = indexKey(segment.id);
  const stored = await readWhole(objects, key);
  const index = stored && decodeIndex(stored, segment);
  if (index !== undefined) return index;
  onNotice(
    `${objects.name}${key} is ${stored === undefined ? "missing" : "damaged"}: reading ${carKey(segment.id)} instead`,
  );
  const { blocks, damage } = await blocksOfCar(objects, segment);
  if (damage !== undefined) {
    const car = objects.name + carKey(segment.id);
    onNotice(
      `${car}: ${damage}. Restore it and restart this host: until then, the host knows ${blocks.length} of its ${segment.blocks} blocks`,
    );
  }
  return blocks;
}

export async function readWhole(objects: ObjectStore, key: string): Promise<Uint8Array | undefined> {
  const found = await objects.stream(key);
  return found && readUpTo(found.body);
}

/** Returns the blocks before the first damage, and a description of the damage. */
async function blocksOfCar(
  objects: ObjectStore,
  segment: Segment,
): Promise<{ readonly blocks: IndexedBlock[]; readonly damage: string | undefined }> {
  const blocks: IndexedBlock[] = [];
  const reader = new SectionReader(storedFile(objects, segment), segmentHeader.length, segment.bytes, {
    withData: false,
  });
  try {
    for (let found = await reader.next(); found !== undefined; found = await reader.next()) {
      const { multihash, form, offset, length } = found;
      blocks.push({ multihash: ownBytes(multihash), form, offset, length });
    }
  } catch (error) {
    if (!isLost(error)) throw error;
    return { blocks, damage: error.message };
  }
  return {
    blocks,
    damage: isOfWhole(segment, blocks) ? undefined : (reader.damage ?? "its content differs from what was written"),
  };
}
