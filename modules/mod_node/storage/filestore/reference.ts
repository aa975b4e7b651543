/**
 * References of the filestore: where the bytes of a block are. They have the format of the message
 * `DataObj` of go-filestore.
 */

import { FieldReader, fieldLength, tagOf, wireBytes, wireVarint } from "../../formats/protobuf/fields.ts";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import { byteText, textBytes } from "../../util/byte_text.ts";
import { NodeError } from "../../util/errors.ts";

const FIELDS = { path: 1, offset: 2, size: 3 } as const;

export interface Reference {
  /** A path below the root of the filestore, separated by `/`, or a URL. */
  readonly path: string;
  /** In bytes, as is `size`. */
  readonly offset: number;
  readonly size: number;
}

/** The status numbers of `filestore/ls` and `filestore/verify`. */
export const statuses = {
  ok: 0,
  fileError: 10,
  fileNotFound: 11,
  fileChanged: 12,
  otherError: 20,
  keyNotFound: 30,
} as const;

export type Status = (typeof statuses)[keyof typeof statuses];

/** The file or URL no longer has the bytes that the reference names. */
export class CorruptReference extends NodeError {
  readonly status: Status;

  constructor(status: Status, message: string, cause?: unknown) {
    super("REFERENCE_BROKEN", message, { cause });
    this.status = status;
  }
}

export const isUrl = (path: string): boolean =>
  (path.startsWith("http://") && path.length > 7) || (path.startsWith("https://") && path.length > 8);

/** Encodes a reference as `DataObj`. An offset or size of zero is left out. */
export function encodeReference({ path, offset, size }: Reference): Uint8Array {
  const name = textBytes(path);
  const numbers = [
    [tagOf(FIELDS.offset, wireVarint), offset],
    [tagOf(FIELDS.size, wireVarint), size],
  ] as const;
  const nonZero = numbers.filter(([, value]) => value !== 0);
  const length = nonZero.reduce((sum, [, value]) => sum + 1 + varintLength(value), fieldLength(name.length));
  const bytes = new Uint8Array(length);
  bytes[0] = tagOf(FIELDS.path, wireBytes);
  let at = writeVarint(bytes, 1, name.length);
  bytes.set(name, at);
  at += name.length;
  for (const [tag, value] of nonZero) {
    bytes[at] = tag;
    at = writeVarint(bytes, at + 1, value);
  }
  return bytes;
}

/** @throws NodeError when the bytes are not a reference */
export function decodeReference(bytes: Uint8Array): Reference {
  const reader = new FieldReader(bytes);
  let path = "";
  let offset = 0;
  let size = 0;
  while (reader.next()) {
    if (reader.field === FIELDS.path) path = byteText(reader.bytes);
    else if (reader.field === FIELDS.offset) offset = reader.number;
    else if (reader.field === FIELDS.size) size = reader.number;
  }
  return { path, offset, size };
}
