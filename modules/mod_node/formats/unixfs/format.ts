/** The UnixFS message inside dag-pb nodes (storage section 2, "UnixFS data"). */

import { NodeError } from "../../util/errors.ts";
import { FieldReader, fieldLength, writeField } from "../protobuf/fields.ts";
import { varintLength, writeVarint } from "../protobuf/varint.ts";

export const unixfsTypes = ["Raw", "Directory", "File", "Metadata", "Symlink", "HAMTShard"] as const;
export type UnixfsType = (typeof unixfsTypes)[number];

export interface Unixfs {
  readonly type: UnixfsType;
  readonly data?: Uint8Array | undefined;
  /** Bytes of the file below this node; undefined when the message does not say. */
  readonly filesize?: number | undefined;
  /** Bytes of the file below each link. */
  readonly blocksizes?: readonly number[] | undefined;
  readonly hashType?: number | undefined;
  readonly fanout?: number | undefined;
}

/** @throws NodeError when the bytes are no UnixFS message */
export function decodeUnixfs(bytes: Uint8Array): Unixfs {
  const reader = new FieldReader(bytes);
  const blocksizes: number[] = [];
  let type: UnixfsType | undefined;
  let typed = false;
  const rest: { data?: Uint8Array; filesize?: number; hashType?: number; fanout?: number } = {};
  while (reader.next()) {
    if (reader.field === 1) {
      type = unixfsTypes[reader.number];
      typed = true;
    } else if (reader.field === 2) rest.data = reader.bytes;
    else if (reader.field === 3) rest.filesize = reader.number;
    else if (reader.field === 4) readSizes(reader, blocksizes);
    else if (reader.field === 5) rest.hashType = reader.number;
    else if (reader.field === 6) rest.fanout = reader.number;
  }
  if (type === undefined)
    throw new NodeError(typed ? "unrecognized node type" : 'proto: required field "Type" not set');
  return { type, ...rest, blocksizes };
}

/** Sizes come one entry each, or packed by other writers. */
function readSizes(reader: FieldReader, into: number[]): void {
  if (reader.bytes.length === 0) into.push(reader.number);
  else for (let at = 0; at < reader.bytes.length; ) at = readPacked(reader.bytes, at, into);
}

function readPacked(bytes: Uint8Array, from: number, into: number[]): number {
  let value = 0;
  let scale = 1;
  let at = from;
  for (;;) {
    const byte = bytes[at++];
    if (byte === undefined) throw new NodeError("unexpected EOF");
    value += (byte & 0x7f) * scale;
    scale *= 128;
    if (byte < 0x80) break;
  }
  into.push(value);
  return at;
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
  let at = writeNumber(bytes, 0, 0x08, unixfsTypes.indexOf(type));
  if (data !== undefined) at = writeField(bytes, at, 0x12, data);
  at = writeNumber(bytes, at, 0x18, filesize);
  for (const size of blocksizes) at = writeNumber(bytes, at, 0x20, size);
  at = writeNumber(bytes, at, 0x28, hashType);
  writeNumber(bytes, at, 0x30, fanout);
  return bytes;
}
