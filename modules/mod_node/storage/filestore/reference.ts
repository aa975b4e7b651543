/** What the filestore keeps of a block: where its bytes stand, in the reference's own form. */

import { FieldReader, fieldLength } from "../../formats/protobuf/fields.ts";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import { NodeError } from "../../util/errors.ts";

export interface Reference {
  /** Path below the root of the filestore, with `/`; or a URL. */
  readonly path: string;
  /** Bytes. */
  readonly offset: number;
  readonly size: number;
}

/** As `filestore/ls` and `verify` number what they found. */
export const statuses = {
  ok: 0,
  fileError: 10,
  fileNotFound: 11,
  fileChanged: 12,
  otherError: 20,
  keyNotFound: 30,
} as const;

export type Status = (typeof statuses)[keyof typeof statuses];

/** Bytes that do not stand any more where they should. */
export class CorruptReference extends NodeError {
  readonly status: Status;

  constructor(status: Status, message: string, cause?: unknown) {
    super(message, { code: "REFERENCE_BROKEN", cause });
    this.status = status;
  }
}

export const isUrl = (path: string): boolean =>
  (path.startsWith("http://") && path.length > 7) || (path.startsWith("https://") && path.length > 8);

/** A message of path, offset and size; zeros are left out. */
export function encodeReference({ path, offset, size }: Reference): Uint8Array {
  const name = Buffer.from(path);
  const numbers = [
    [0x10, offset],
    [0x18, size],
  ] as const;
  const kept = numbers.filter(([, value]) => value !== 0);
  const length = kept.reduce((sum, [, value]) => sum + 1 + varintLength(value), fieldLength(name.length));
  const bytes = new Uint8Array(length);
  bytes[0] = 0x0a;
  let at = writeVarint(bytes, 1, name.length);
  bytes.set(name, at);
  at += name.length;
  for (const [tag, value] of kept) {
    bytes[at] = tag;
    at = writeVarint(bytes, at + 1, value);
  }
  return bytes;
}

/** @throws NodeError when the bytes are no reference */
export function decodeReference(bytes: Uint8Array): Reference {
  const reader = new FieldReader(bytes);
  let [path, offset, size] = ["", 0, 0];
  while (reader.next()) {
    if (reader.field === 1) path = Buffer.from(reader.bytes).toString();
    else if (reader.field === 2) offset = reader.number;
    else if (reader.field === 3) size = reader.number;
  }
  return { path, offset, size };
}
