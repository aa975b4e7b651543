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

/** By number. */
export const unixfsTypes = ["Raw", "Directory", "File", "Metadata", "Symlink", "HAMTShard"] as const;
export type UnixfsType = (typeof unixfsTypes)[number];

/**
 * A moment: whole seconds since 1970, which may be negative, and the nanoseconds after them, below
 * 1,000,000,000.
 */
export interface UnixTime {
  readonly seconds: number;
  readonly nanoseconds: number;
}

/**
 * What UnixFS 1.5 says of a file, directory or symlink beside its content; on its root node alone.
 */
export interface ModeAndTime {
  /** Its last nine bits are the permissions. */
  readonly mode?: number | undefined;
  /** When it was last changed. */
  readonly mtime?: UnixTime | undefined;
}

export interface Unixfs extends ModeAndTime {
  readonly type: UnixfsType;
  readonly data?: Uint8Array | undefined;
  /** Bytes of the file in this node and below it; undefined when the message does not say. */
  readonly filesize?: number | undefined;
  /** Bytes of the file below each link, in the order of the links. */
  readonly blocksizes?: readonly number[] | undefined;
  /** Of a HAMTShard: the multihash code of the function that spreads names. */
  readonly hashType?: number | undefined;
  /** Of a HAMTShard: slots of a shard. */
  readonly fanout?: number | undefined;
}

/** More parts than a node of any block has links. */
const MAX_BLOCKSIZES = 2 ** 17;

/**
 * @throws NodeError when the bytes are not a UnixFS message, or one of more parts than
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

/** Undefined where it is malformed: writers of before 1.5 may use the field for anything. */
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

/** Seconds before 1970 take ten bytes, as a varint has them; no nanoseconds take none. */
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

/** Each size is a field of its own; other writers pack all of them into one field. */
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
    // The tenth byte holds the last bit of the 64.
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
