import type { RequestHeaders } from "../types.ts";
import { isWebScheme } from "./app_urls.ts";

/** Origins, beside the server's own, whose pages may open websockets. */
export type OriginPolicy = ReadonlySet<string> | "*";

/** Joins lists of origins; one "*" allows any. URLs count as the origin they belong to. */
export function originPolicy(...lists: (Iterable<string> | undefined)[]): OriginPolicy {
  const origins = new Set(lists.flatMap((list) => [...(list ?? [])]).map(normalized));
  return origins.has("*") ? "*" : origins;
}

/**
 * May a page connect? Browsers send their cookies along with websockets from any site, so a page of another origin is
 * refused unless the policy names it. Who sends no Origin is no page.
 */
export function mayConnect(
  policy: OriginPolicy | undefined,
  request: { readonly headers: RequestHeaders; readonly secure: boolean },
  authority: string | undefined,
): boolean {
  const { origin } = request.headers;
  if (origin === undefined || policy === "*" || policy?.has(normalized(origin)) === true) return true;
  const page = URL.parse(origin);
  if (page === null || !isWebScheme(page.protocol.slice(0, -1))) return false;
  // Whoever can forge a plain page of the same name is not to speak for the encrypted one.
  if (request.secure && page.protocol === "http:") return false;
  return page.host === URL.parse(`${page.protocol}//${authority}`)?.host;
}

function normalized(origin: string): string {
  const url = URL.parse(origin);
  return url !== null && isWebScheme(url.protocol.slice(0, -1)) ? url.origin : origin;
}

/** Does a request come from a page of this very origin, or from no page at all? `authority`: the host that it names. */
export function isSameOrigin(
  request: { readonly headers: RequestHeaders; readonly secure: boolean },
  authority: string | undefined,
): boolean {
  return mayConnect(undefined, request, authority);
}
