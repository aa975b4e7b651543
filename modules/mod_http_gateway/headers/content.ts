/** Headers that every answer with content has. */
import type { ResponseHeaders } from "../../../core/types.ts";
import type { Asked } from "../asked.ts";
import type { Found } from "../resolve.ts";
import { cacheControl } from "./cache.ts";

export function contentHeaders(
  { settings, path }: Pick<Asked, "settings" | "path">,
  found: Found,
  etag: string,
): ResponseHeaders {
  return {
    ...settings.headers,
    cache_control: cacheControl(found),
    etag,
    ...pathHeaders(path, found),
    // The specification would rather have nothing here; clients of the reference look at it.
    last_modified: found.lifetime === undefined ? undefined : new Date().toUTCString(),
  };
}

/** Of a path of thousands of segments they would be more than clients, and HTTP/2, take of a head. */
const MAX_ROOTS = 100;

/** What was asked for, and through which blocks it led. */
function pathHeaders(path: string, { roots, text }: Pick<Found, "roots" | "text">): ResponseHeaders {
  return { x_ipfs_path: headerText(path), x_ipfs_roots: rootsText(roots, text) };
}

function rootsText(roots: Found["roots"], last: string): string | undefined {
  if (roots.length > MAX_ROOTS) return undefined;
  // Of one its text is known already.
  return roots.length === 1 ? last : roots.join(",");
}

/** UTF-8 as Go sends it, a character of the header for a byte; what no header can carry is escaped. */
export function headerText(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text;
  return Buffer.from(text.replace(/\p{Cc}/gu, encodeURIComponent)).toString("latin1");
}
