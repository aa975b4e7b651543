/**
 * Counts the fields of protobuf messages of peers before a library decodes them: each becomes
 * objects.
 */
import { failure } from "../../util/errors.ts";
import { FieldReader } from "./fields.ts";

/** The messages within a message, by the numbers of their fields. */
export interface Nested {
  readonly [field: number]: Nested;
}

/**
 * @throws NodeError for a message of more than `most` fields, those of the messages within counted,
 * and for malformed bytes
 */
export function requireFewFields(bytes: Uint8Array, nested: Nested, most: number): void {
  count(bytes, nested, most, most);
}

/** Gives how many may still come. */
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
