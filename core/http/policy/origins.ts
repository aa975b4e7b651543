import type { HttpRequest } from "../../types.ts";

const defaultPorts: Readonly<Record<string, number>> = { http: 80, https: 443 };

/** Origins whose pages may open websockets, in addition to the server's own. */
export type OriginPolicy = ReadonlySet<string> | "*";

/** Joins lists of origins; one "*" allows any. A URL stands for its origin. */
export function originPolicy(...lists: (Iterable<string> | undefined)[]): OriginPolicy {
  const origins = new Set(lists.flatMap((list) => [...(list ?? [])]).map(normalized));
  return origins.has("*") ? "*" : origins;
}

/**
 * Whether a page may open a websocket. Browsers send cookies with websockets from any site, so a
 * page of another origin is refused unless the policy names it. A client without an Origin header
 * is not a page.
 */
export function mayConnect(
  policy: OriginPolicy | undefined,
  request: Pick<HttpRequest, "header" | "secure">,
  authority: string | undefined,
): boolean {
  const origin = request.header("origin");
  if (origin === undefined || policy === "*" || policy?.has(normalized(origin)) === true) return true;
  const page = URL.parse(origin);
  if (page === null || !isWebScheme(page.protocol.slice(0, -1))) return false;
  // An attacker who forges a plain page of the same name must not speak for the encrypted one.
  if (request.secure && page.protocol === "http:") return false;
  return page.host === URL.parse(`${page.protocol}//${authority}`)?.host;
}

function normalized(origin: string): string {
  const url = URL.parse(origin);
  return url !== null && isWebScheme(url.protocol.slice(0, -1)) ? url.origin : origin;
}

/**
 * Whether a request comes from a page of this origin, or from no page at all. `authority`: the host
 * that it names.
 */
export function isSameOrigin(request: Pick<HttpRequest, "header" | "secure">, authority: string | undefined): boolean {
  return mayConnect(undefined, request, authority);
}

/** Returns an origin such as `https://example.org:5281`, without the scheme's own port. */
export function originOf(scheme: string, name: string, port: number): string {
  return `${scheme}://${name}${port === defaultPorts[scheme] ? "" : `:${port}`}`;
}

/** Whether URLs of apps can have the scheme. */
export function isWebScheme(scheme: string | undefined): scheme is string {
  return scheme !== undefined && Object.hasOwn(defaultPorts, scheme);
}
