/** Writes protobuf messages by hand, including ones that no encoder would write. */
import { fieldLength, writeField } from "#node/formats/protobuf/fields.ts";
import { varintLength, writeVarint } from "#node/formats/protobuf/varint.ts";

/** Makes a field with bytes. */
export function field(number: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const into = Buffer.alloc(fieldLength(content.length));
  writeField(into, 0, number * 8 + 2, content);
  return into;
}

/** Makes a message of these fields, with its length in front. */
export function framed(...fields: readonly Uint8Array[]): Buffer {
  const bytes = Buffer.concat(fields);
  const head = Buffer.alloc(varintLength(bytes.length));
  writeVarint(head, 0, bytes.length);
  return Buffer.concat([head, bytes]);
}
