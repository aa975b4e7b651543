/** Sets how long a response may be cached. */
import type { Found } from "../resolve.ts";

/** The content of a CID never changes. All gateways use 48 weeks. */
const IMMUTABLE = "public, max-age=29030400, immutable";
/** Pages that the gateway makes change with its version. */
const PAGE_AGE = 604_800;
const STALE = "stale-while-revalidate=2678400";

/** Returns Cache-Control for content; undefined if a name has no lifetime. */
export function cacheControl({ lifetime }: Pick<Found, "lifetime">): string | undefined {
  if (lifetime === undefined) return IMMUTABLE;
  return lifetime.seconds === undefined ? undefined : `public, max-age=${lifetime.seconds}`;
}

/** Returns Cache-Control for a page that lists a directory. */
export function pageCacheControl({ lifetime }: Pick<Found, "lifetime">): string | undefined {
  const seconds = lifetime === undefined ? PAGE_AGE : lifetime.seconds;
  return seconds === undefined ? undefined : `public, max-age=${seconds}, ${STALE}`;
}
