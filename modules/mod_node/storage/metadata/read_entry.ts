/** Values of the metadata, which outlive programs and disks: what cannot be read is told with its key. */
import { failure } from "../../util/errors.ts";

/** What `read` makes of the value. @throws NodeError METADATA_DAMAGED */
export function readEntry<T>(key: string, value: Uint8Array, read: (value: Uint8Array) => T): T {
  try {
    return read(value);
  } catch (error) {
    throw failure("METADATA_DAMAGED", { key, reason: (error as Error).message }, error);
  }
}

/** The same, of a value that is JSON. @throws NodeError METADATA_DAMAGED */
export const readJsonEntry = <T>(key: string, value: Uint8Array, read: (json: unknown) => T): T =>
  readEntry(key, value, (bytes) => read(JSON.parse(Buffer.from(bytes).toString())));
