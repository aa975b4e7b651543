/**
 * Reads values of the metadata. They outlive programs and disks, so an error for an unreadable
 * value names its key.
 */
import { failure } from "../../util/errors.ts";

/**
 * Returns what `read` makes of the value.
 * @throws NodeError METADATA_DAMAGED
 */
export function readEntry<T>(key: string, value: Uint8Array, read: (value: Uint8Array) => T): T {
  try {
    return read(value);
  } catch (error) {
    throw failure("METADATA_DAMAGED", { key, reason: (error as Error).message }, error);
  }
}

/**
 * Returns what `read` makes of a JSON value.
 * @throws NodeError METADATA_DAMAGED
 */
export const readJsonEntry = <T>(key: string, value: Uint8Array, read: (json: unknown) => T): T =>
  readEntry(key, value, (bytes) => read(JSON.parse(Buffer.from(bytes).toString())));
