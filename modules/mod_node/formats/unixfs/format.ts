/** The UnixFS message in the data of dag-pb nodes ("UnixFS specification", message `Data`). */

import { failure, NodeError } from "../../util/errors.ts";
import { FieldReader, fieldLength, tagOf, wireBytes, wireFixed32, wireVarint, writeField } from "../protobuf/fields.ts";
import { varintLength, writeVarint, writeVarint64 } from "../protobuf/varint.ts";

const FIELDS = { type: 1, data: 2, filesize: 3, blocksizes: 4, hashType: 5, fanout: 6, mode: 7, mtime: 8 } as const;

export const UNIXFS_TYPE_TAG = tagOf(FIELDS.type, wireVarint);
export const UNIXFS_DATA_TAG = tagOf(FIELDS.data, wireBytes);
export const UNIXFS_FILESIZE_TAG = tagOf(FIELDS.filesize, wireVarint);
const BLOCKSIZE_TAG = tagOf(FIELDS.blocksizes, wireVarint);
const HASH_TYPE_TAG = tagOf(FIELDS.hashType, wireVarint);
const FANOUT_TAG = tagOf(FIELDS.fanout, wireVarint);
const MODE_TAG = tagOf(FIELDS.mode, wireVarint);
const MTIME_TAG = tagOf(FIELDS.mtime, wireBytes);

/** Names of the types; the index is the number of the type in the message. */
export const unixfsTypes = ["Raw", "Directory", "File", "Metadata", "Symlink", "HAMTShard"] as const;
export type UnixfsType = (typeof unixfsTypes)[number];

/**
 * A point in time: whole seconds since 1970, which may be negative, and the nanoseconds after them,
 * which are below 1,000,000,000.
 */
export interface UnixTime {
  readonly seconds: number;
  readonly nanoseconds: number;
}

/**
 * Metadata that UnixFS 1.5 adds to a file, directory or symlink. Only the root node of a file has
 * it.
 */
export interface ModeAndTime {
  /** The last nine bits are the permissions. */
  readonly mode?: number | undefined;
  /** Time of the last modification. */
  readonly mtime?: UnixTime | undefined;
}

export interface Unixfs extends ModeAndTime {
  readonly type: UnixfsType;
  readonly data?: Uint8Array | undefined;
  /**
   * Size in bytes of the part of the file in and below this node; undefined if the message does not
   * contain it.
   */
  readonly filesize?: number | undefined;
  /** Size in bytes of the part of the file below each link, in the order of the links. */
  readonly blocksizes?: readonly number[] | undefined;
  /** Only in a HAMTShard: multihash code of the function that distributes names over slots. */
  readonly hashType?: number | undefined;
  /** Only in a HAMTShard: number of slots per shard. */
  readonly fanout?: number | undefined;
}

/** Maximum number of parts. No block is large enough for a node with so many links. */
const MAX_BLOCKSIZES = 2 ** 17;

/**
 * @throws NodeError if the bytes are not a UnixFS message, or if it has more parts than
 * `MAX_BLOCKSIZES`
 */
export function decodeUnixfs(bytes: Uint8Array): Unixfs {
  const reader = new FieldReader(bytes);
  const blocksizes: number[] = [];
  let type: UnixfsType | undefined;
  let typed = false;
  const rest: {
    data?: Uint8Array;
    filesize?: number;
    hashType?: number;
    fanout?: number;
    mode?: number;
    mtime?: UnixTime | undefined;
  } = {};
  while (reader.next()) {
    if (reader.field === FIELDS.type) {
      type = unixfsTypes[reader.number];
      typed = true;
    } else if (reader.field === FIELDS.data) rest.data = reader.bytes;
    else if (reader.field === FIELDS.filesize) rest.filesize = reader.number;
    else if (reader.field === FIELDS.blocksizes) readSizes(reader, blocksizes);
    else if (reader.field === FIELDS.hashType) rest.hashType = reader.number;
    else if (reader.field === FIELDS.fanout) rest.fanout = reader.number;
    else if (reader.field === FIELDS.mode) rest.mode = reader.number;
    else if (reader.field === FIELDS.mtime) rest.mtime = readTime(reader.bytes);
  }
  if (type === undefined)
    throw failure("UNIXFS_INVALID", {
      reason: typed ? "unrecognized node type" : 'proto: required field "Type" not set',
    });
  return { type, ...rest, blocksizes };
}

const TIME_FIELDS = { seconds: 1, nanoseconds: 2 } as const;
const TIME_SECONDS_TAG = tagOf(TIME_FIELDS.seconds, wireVarint);
const TIME_NANOSECONDS_TAG = tagOf(TIME_FIELDS.nanoseconds, wireFixed32);

/**
 * Returns undefined for a malformed time, because programs older than UnixFS 1.5 may use the field
 * for anything.
 */
function readTime(bytes: Uint8Array): UnixTime | undefined {
  try {
    const reader = new FieldReader(bytes);
    let seconds: number | undefined;
    let nanoseconds = 0;
    while (reader.next()) {
      if (reader.field === TIME_FIELDS.seconds) seconds = Number(BigInt.asIntN(64, reader.integer));
      else if (reader.field === TIME_FIELDS.nanoseconds) nanoseconds = reader.fixed32;
    }
    return seconds === undefined || nanoseconds >= 1e9 ? undefined : { seconds, nanoseconds };
  } catch (error) {
    if (error instanceof NodeError) return undefined;
    throw error;
  }
}

/**
 * Encodes a time. As a varint, seconds before 1970 take ten bytes; zero nanoseconds are omitted.
 */
function timeBytes({ seconds, nanoseconds }: UnixTime): Uint8Array {
  const bytes = Buffer.alloc(1 + 10 + 5);
  bytes[0] = TIME_SECONDS_TAG;
  let at = writeVarint64(bytes, 1, BigInt(seconds));
  if (nanoseconds > 0) {
    bytes[at] = TIME_NANOSECONDS_TAG;
    at = bytes.writeUInt32LE(nanoseconds, at + 1);
  }
  return bytes.subarray(0, at);
}

/**
 * We write each size as a field of its own; other programs pack all sizes into one field. Both are
 * read.
 */
function readSizes(reader: FieldReader, into: number[]): void {
  const { bytes } = reader;
  if (bytes.length === 0) into.push(reader.number);
  else for (let at = 0; at < bytes.length; ) at = readPacked(bytes, at, into);
}

function readPacked(bytes: Uint8Array, from: number, into: number[]): number {
  if (into.length === MAX_BLOCKSIZES)
    throw failure("UNIXFS_INVALID", { reason: `a node of more than ${MAX_BLOCKSIZES} parts` });
  let value = 0;
  let scale = 1;
  for (let read = 0; read < 10; read += 1) {
    const byte = bytes[from + read];
    if (byte === undefined) throw failure("UNIXFS_INVALID", { reason: "unexpected EOF" });
    value += (byte & 0x7f) * scale;
    // The tenth byte contains only the last of the 64 bits.
    if (read === 9 && byte > 1) break;
    if (byte < 0x80) {
      into.push(value);
      return from + read + 1;
    }
    scale *= 128;
  }
  throw failure("UNIXFS_INVALID", { reason: "proto: integer overflow" });
}

const numberLength = (value: number | undefined): number => (value === undefined ? 0 : 1 + varintLength(value));

function writeNumber(into: Uint8Array, at: number, tag: number, value: number | undefined): number {
  if (value === undefined) return at;
  into[at] = tag;
  return writeVarint(into, at + 1, value);
}

export function encodeUnixfs(node: Unixfs): Uint8Array {
  const { type, data, filesize, blocksizes = [], hashType, fanout, mode } = node;
  const mtime = node.mtime && timeBytes(node.mtime);
  const lengths = blocksizes.reduce((sum, size) => sum + numberLength(size), 0);
  const numbers = numberLength(filesize) + lengths + numberLength(hashType) + numberLength(fanout) + numberLength(mode);
  const bytes = new Uint8Array(2 + lengthOf(data) + numbers + lengthOf(mtime));
  let at = writeNumber(bytes, 0, UNIXFS_TYPE_TAG, unixfsTypes.indexOf(type));
  if (data !== undefined) at = writeField(bytes, at, UNIXFS_DATA_TAG, data);
  at = writeNumber(bytes, at, UNIXFS_FILESIZE_TAG, filesize);
  for (const size of blocksizes) at = writeNumber(bytes, at, BLOCKSIZE_TAG, size);
  at = writeNumber(bytes, at, HASH_TYPE_TAG, hashType);
  at = writeNumber(bytes, at, FANOUT_TAG, fanout);
  at = writeNumber(bytes, at, MODE_TAG, mode);
  if (mtime !== undefined) writeField(bytes, at, MTIME_TAG, mtime);
  return bytes;
}

const lengthOf = (field: Uint8Array | undefined): number => (field === undefined ? 0 : fieldLength(field.length));
