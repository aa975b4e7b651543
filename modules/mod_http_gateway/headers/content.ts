/** Headers that every response with content has. */
import { textBytes } from "modhost/node";
import type { ResponseHeaders } from "../../../core/types.ts";
import type { GatewayCall } from "../gateway_call.ts";
import type { Found } from "../resolve.ts";
import { cacheControl } from "./cache.ts";

export function contentHeaders(
  { settings, path }: Pick<GatewayCall, "settings" | "path">,
  found: Found,
  etag: string,
): ResponseHeaders {
  return {
    ...settings.headers,
    cache_control: cacheControl(found),
    etag,
    ...pathHeaders(path, found),
    // The specification recommends no header here, but clients of go-ipfs read it.
    last_modified: found.lifetime === undefined ? undefined : new Date().toUTCString(),
  };
}

/** With thousands of path segments, the header would exceed the limits of clients and of HTTP/2. */
const MAX_ROOTS = 100;

/** Returns headers with the requested path, and with the blocks on it. */
export function pathHeaders(path: string, { roots, text }: Pick<Found, "roots" | "text">): ResponseHeaders {
  return { x_ipfs_path: headerText(path), x_ipfs_roots: rootsText(roots, text) };
}

function rootsText(roots: Found["roots"], last: string): string | undefined {
  if (roots.length > MAX_ROOTS) return undefined;
  // The text of a single root is already known.
  return roots.length === 1 ? last : roots.join(",");
}

/**
 * Encodes UTF-8 as Go does, one header character per byte. Escapes characters that no header can
 * contain.
 */
export function headerText(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text;
  return textBytes(text.replace(/\p{Cc}/gu, encodeURIComponent)).toString("latin1");
}
