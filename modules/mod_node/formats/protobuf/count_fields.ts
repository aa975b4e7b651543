/**
 * Counts the fields of protobuf messages from peers before a library decodes them, because the
 * library creates objects for every field.
 */
import { failure } from "../../util/errors.ts";
import { FieldReader } from "./fields.ts";

/** The nested messages of a message, by field number. */
export interface Nested {
  readonly [field: number]: Nested;
}

/**
 * @throws NodeError for malformed bytes, and for a message with more than `most` fields, including
 * those of nested messages
 */
export function requireFewFields(bytes: Uint8Array, nested: Nested, most: number): void {
  count(bytes, nested, most, most);
}

/** Returns how many more fields are allowed. */
function count(bytes: Uint8Array, nested: Nested, before: number, most: number): number {
  let left = before;
  const reader = new FieldReader(bytes);
  while (reader.next()) {
    if (left === 0) throw failure("PROTOBUF_INVALID", { reason: `a message of more than ${most} fields` });
    left -= 1;
    const inner = nested[reader.field];
    if (inner !== undefined && reader.bytes.length > 0) left = count(reader.bytes, inner, left, most);
  }
  return left;
}
