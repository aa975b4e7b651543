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
 * None when neither object is there: what of the segment was of use is elsewhere, which the log says further on; or they are lost, or
 * not there yet, which `onNotice` is told. Of a CAR file that is damaged or cut off, those before that.
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
  onNotice(`${objects.name}${key} is ${stored === undefined ? "missing" : "damaged"}: ${carKey(segment.id)} is read`);
  const { blocks, damage } = await blocksOfCar(objects, segment);
  if (damage !== undefined) {
    const car = objects.name + carKey(segment.id);
    onNotice(
      `${car}: ${damage}. Put it back: this host knows ${blocks.length} of its ${segment.blocks} blocks until it is started again then`,
    );
  }
  return blocks;
}

export async function readWhole(objects: ObjectStore, key: string): Promise<Uint8Array | undefined> {
  const found = await objects.stream(key);
  return found && readUpTo(found.body);
}

/** Blocks up to where the file is none that was written, and what is wrong there. */
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
  return { blocks, damage: isOfWhole(segment, blocks) ? undefined : (reader.damage ?? "it is not what was written") };
}
