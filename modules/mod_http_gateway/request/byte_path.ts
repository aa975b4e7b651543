/** Decodes paths with names that are not UTF-8, whose escapes the host leaves as they are. */
import { byteText } from "modhost/node";
import type { HttpRequest } from "../../../core/types.ts";

/**
 * Decodes a raw path. Bytes that are not UTF-8 become what `byteText` writes for them; bad escapes
 * stay as they are.
 */
export const unescapedBytes = (raw: string): string =>
  raw.replace(/(?:%[0-9a-f]{2})+/gi, (run) => byteText(Buffer.from(run.replaceAll("%", ""), "hex")));

/** Returns `rest`, the end of a request's path, with the original bytes of its names. */
export function withBytes(rest: string, { path, url }: Pick<HttpRequest, "path" | "url">): string {
  // Without an undecoded escape, `rest` is already correct.
  if (!/%[0-9a-f]{2}/i.test(rest)) return rest;
  return unescapedBytes(url.raw_path)
    .replace(/\/{2,}/g, "/")
    .slice(path.length - rest.length);
}
