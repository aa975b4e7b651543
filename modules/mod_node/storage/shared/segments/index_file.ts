/**
 * The index file of a segment, `<id>.idx`: its blocks and their offsets. README.md describes the
 * format.
 */
import { hash } from "node:crypto";
import { varint } from "multiformats";
import { type Form, segmentHeader, Varints, varints } from "../../blockstore/segments/format.ts";
import type { Segment, SegmentId } from "../log.ts";

/** A block in a segment. */
export interface IndexedBlock {
  readonly multihash: Uint8Array;
  readonly form: Form;
  /** Offset of the first data byte in the CAR file. */
  readonly offset: number;
  readonly length: number;
}

/** The index of this many blocks takes about 25 KiB. */
const MAX_INLINE_BLOCKS = 512;

/**
 * Whether the index of a segment with this many blocks is part of the commit instead of an object,
 * so that hosts need no request for it.
 */
export const isIndexInLog = (blocks: number): boolean => blocks <= MAX_INLINE_BLOCKS;

const magic = Buffer.from("car-idx2");
/** Magic bytes of the previous format, which has no id. */
const magicWithoutId = Buffer.from("car-idx1");
const SUM_BYTES = 32;

const inOrder = (one: IndexedBlock, other: IndexedBlock): number =>
  Buffer.compare(one.multihash, other.multihash) || one.offset - other.offset;

export function encodeIndex(id: SegmentId, blocks: readonly IndexedBlock[]): Uint8Array {
  const parts: Uint8Array[] = [magic, varints([id.length]), Buffer.from(id), varints([blocks.length])];
  for (const { multihash, form, offset, length } of [...blocks].sort(inOrder))
    parts.push(varints([multihash.length]), multihash, varints([form, offset, length]));
  const body = Buffer.concat(parts);
  return Buffer.concat([body, hash("sha256", body, "buffer")]);
}

/**
 * Decodes the blocks in order, as views of `bytes`. Undefined when the bytes are damaged or are not
 * the index of this segment.
 */
export function decodeIndex(bytes: Uint8Array, segment: SegmentToFit): IndexedBlock[] | undefined {
  const end = bytes.length - SUM_BYTES;
  if (end < magic.length) return undefined;
  if (Buffer.compare(hash("sha256", bytes.subarray(0, end), "buffer"), bytes.subarray(end)) !== 0) return undefined;
  // The checksum is right, so `encodeIndex` wrote everything that follows.
  const read = new Varints(bytes, magic.length);
  const begin = bytes.subarray(0, magic.length);
  if (Buffer.compare(begin, magic) === 0) {
    const length = read.next();
    const id = Buffer.from(bytes.subarray(read.at, (read.at += length))).toString();
    if (id !== segment.id) return undefined;
  } else if (Buffer.compare(begin, magicWithoutId) !== 0) return undefined;
  const blocks = blocksIn(bytes, read);
  return isOfWhole(segment, blocks) ? blocks : undefined;
}

const blocksIn = (bytes: Uint8Array, read: Varints): IndexedBlock[] =>
  Array.from({ length: read.next() }, () => {
    const length = read.next();
    const multihash = bytes.subarray(read.at, (read.at += length));
    return { multihash, form: read.next(), offset: read.next(), length: read.next() };
  });

/** The facts about a segment that the log contains. */
type SegmentToFit = Pick<Segment, "id" | "bytes" | "blocks">;

/** Whether these are all blocks of a segment: their sections add up to the whole file. */
export const isOfWhole = ({ bytes, blocks }: SegmentToFit, found: readonly IndexedBlock[]): boolean =>
  found.length === blocks && found.reduce((sum, block) => sum + sectionBytes(block), segmentHeader.length) === bytes;

/**
 * Returns the number of bytes that a block takes in a segment: the length of its section in the CAR
 * file.
 */
export function sectionBytes({ multihash, form, length }: Pick<IndexedBlock, "multihash" | "form" | "length">): number {
  const cid = multihash.length + (form === 0 ? 0 : 1 + varint.encodingLength(form - 1));
  return varint.encodingLength(cid + length) + cid + length;
}
