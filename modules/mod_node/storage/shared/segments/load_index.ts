/** Reads the index of a segment: from the log, its own object, or the CAR file itself. */
import { readUpTo } from "../../../util/async/read_all.ts";
import { NodeError } from "../../../util/errors.ts";
import { segmentHeader } from "../../blockstore/segments/format.ts";
import { SectionReader } from "../../blockstore/segments/section_reader.ts";
import type { Notice } from "../../lmdb/open.ts";
import type { Segment } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import { decodeIndex, type IndexedBlock } from "./index_file.ts";
import { carKey, indexKey } from "./names.ts";
import { storedFile } from "./stored_segments.ts";

/**
 * None when neither object is there: what of the segment was of use is elsewhere, which the log says further on; or they were deleted
 * by hand, which `onNotice` is told.
 *
 * @throws NodeError STORE_UNAVAILABLE
 */
export async function loadIndex(
  objects: ObjectStore,
  segment: Segment,
  onNotice: Notice,
): Promise<readonly IndexedBlock[]> {
  const inline = segment.index && decodeIndex(segment.index);
  if (inline !== undefined) return inline;
  const key = indexKey(segment.id);
  const stored = await readWhole(objects, key);
  const index = stored && decodeIndex(stored);
  if (index !== undefined) return index;
  onNotice(`${objects.name}${key} is ${stored === undefined ? "missing" : "damaged"}: ${carKey(segment.id)} is read`);
  try {
    return await blocksOfCar(objects, segment);
  } catch (error) {
    if (!NodeError.is(error) || error.code !== "SEGMENT_GONE") throw error;
    onNotice(`${objects.name}${carKey(segment.id)} is missing as well`);
    return [];
  }
}

export async function readWhole(objects: ObjectStore, key: string): Promise<Uint8Array | undefined> {
  const found = await objects.stream(key);
  return found && readUpTo(found.body);
}

/** Blocks up to where the file is no CAR file. */
async function blocksOfCar(objects: ObjectStore, segment: Segment): Promise<IndexedBlock[]> {
  const blocks: IndexedBlock[] = [];
  const reader = new SectionReader(storedFile(objects, segment), segmentHeader.length, segment.bytes, {
    withData: false,
  });
  for (let found = await reader.next(); found !== undefined; found = await reader.next()) {
    const { multihash, form, offset, length } = found;
    blocks.push({ multihash: multihash.slice(), form, offset, length });
  }
  return blocks;
}
