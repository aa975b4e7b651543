/** The UnixFS message in the data of dag-pb nodes ("UnixFS specification", message `Data`). */

import { NodeError } from "../../util/errors.ts";
import { FieldReader, fieldLength, tagOf, wireBytes, wireVarint, writeField } from "../protobuf/fields.ts";
import { varintLength, writeVarint } from "../protobuf/varint.ts";

const FIELDS = { type: 1, data: 2, filesize: 3, blocksizes: 4, hashType: 5, fanout: 6, mode: 7, mtime: 8 } as const;

export const UNIXFS_TYPE_TAG = tagOf(FIELDS.type, wireVarint);
export const UNIXFS_DATA_TAG = tagOf(FIELDS.data, wireBytes);
export const UNIXFS_FILESIZE_TAG = tagOf(FIELDS.filesize, wireVarint);
const BLOCKSIZE_TAG = tagOf(FIELDS.blocksizes, wireVarint);
const HASH_TYPE_TAG = tagOf(FIELDS.hashType, wireVarint);
const FANOUT_TAG = tagOf(FIELDS.fanout, wireVarint);

/** By number. */
export const unixfsTypes = ["Raw", "Directory", "File", "Metadata", "Symlink", "HAMTShard"] as const;
export type UnixfsType = (typeof unixfsTypes)[number];

export interface Unixfs {
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
  /** UnixFS 1.5: the mode of the file, with permissions in its last nine bits. Read, and never written. */
  readonly mode?: number | undefined;
  /** UnixFS 1.5: seconds since 1970 at which it was changed. Read, and never written. */
  readonly mtime?: number | undefined;
}

/** More parts than a node of any block has links. */
const MAX_BLOCKSIZES = 2 ** 17;

/** @throws NodeError when the bytes are not a UnixFS message, or one of more parts than `MAX_BLOCKSIZES` */
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
    mtime?: number | undefined;
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
    throw new NodeError(typed ? "unrecognized node type" : 'proto: required field "Type" not set');
  return { type, ...rest, blocksizes };
}

const TIME_SECONDS = 1;

/** The seconds of a `UnixTime`; undefined where it is malformed: writers of before 1.5 may use the field for anything. */
function readTime(bytes: Uint8Array): number | undefined {
  try {
    const reader = new FieldReader(bytes);
    let seconds: number | undefined;
    while (reader.next()) {
      if (reader.field === TIME_SECONDS) seconds = Number(BigInt.asIntN(64, reader.integer));
    }
    return seconds;
  } catch (error) {
    if (error instanceof NodeError) return undefined;
    throw error;
  }
}

/** Each size is a field of its own; other writers pack all of them into one field. */
function readSizes(reader: FieldReader, into: number[]): void {
  if (reader.bytes.length === 0) into.push(reader.number);
  else for (let at = 0; at < reader.bytes.length; ) at = readPacked(reader.bytes, at, into);
}

function readPacked(bytes: Uint8Array, from: number, into: number[]): number {
  if (into.length === MAX_BLOCKSIZES) throw new NodeError(`a node of more than ${MAX_BLOCKSIZES} parts`);
  let value = 0;
  let scale = 1;
  for (let read = 0; read < 10; read += 1) {
    const byte = bytes[from + read];
    if (byte === undefined) throw new NodeError("unexpected EOF");
    value += (byte & 0x7f) * scale;
    // The tenth byte holds the last bit of the 64.
    if (read === 9 && byte > 1) break;
    if (byte < 0x80) {
      into.push(value);
      return from + read + 1;
    }
    scale *= 128;
  }
  throw new NodeError("proto: integer overflow");
}

const numberLength = (value: number | undefined): number => (value === undefined ? 0 : 1 + varintLength(value));

function writeNumber(into: Uint8Array, at: number, tag: number, value: number | undefined): number {
  if (value === undefined) return at;
  into[at] = tag;
  return writeVarint(into, at + 1, value);
}

export function encodeUnixfs({ type, data, filesize, blocksizes = [], hashType, fanout }: Unixfs): Uint8Array {
  const lengths = blocksizes.reduce((sum, size) => sum + numberLength(size), 0);
  const numbers = numberLength(filesize) + lengths + numberLength(hashType) + numberLength(fanout);
  const bytes = new Uint8Array(2 + (data === undefined ? 0 : fieldLength(data.length)) + numbers);
  let at = writeNumber(bytes, 0, UNIXFS_TYPE_TAG, unixfsTypes.indexOf(type));
  if (data !== undefined) at = writeField(bytes, at, UNIXFS_DATA_TAG, data);
  at = writeNumber(bytes, at, UNIXFS_FILESIZE_TAG, filesize);
  for (const size of blocksizes) at = writeNumber(bytes, at, BLOCKSIZE_TAG, size);
  at = writeNumber(bytes, at, HASH_TYPE_TAG, hashType);
  writeNumber(bytes, at, FANOUT_TAG, fanout);
  return bytes;
}
