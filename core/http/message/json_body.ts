import { ModhostError, reasonOf } from "../../util/errors.ts";

/** Parsing a longer text would block the event loop for more than a few milliseconds. */
export const MAX_JSON_BYTES = 1024 * 1024;

const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses a request body as JSON.
 * @throws {ModhostError} BODY_TOO_LARGE, BODY_NOT_JSON
 */
export function parseJson(bytes: Uint8Array, limit: number): unknown {
  if (bytes.length > limit) throw new ModhostError("BODY_TOO_LARGE", { limit });
  if (bytes.length === 0) throw new ModhostError("BODY_NOT_JSON", { reason: "it is empty" });
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch (cause) {
    throw new ModhostError("BODY_NOT_JSON", { reason: "it is not UTF-8" }, { cause });
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ModhostError("BODY_NOT_JSON", { reason: reasonOf(cause) }, { cause });
  }
}
