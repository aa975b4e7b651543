/** How long an answer may be kept, and by which tag it is known. */
import type { Found } from "../resolve.ts";

/** What a CID names never changes; 48 weeks, as all gateways say it. */
const IMMUTABLE = "public, max-age=29030400, immutable";
/** Pages that the gateway makes change with its version. */
const PAGE_AGE = 604_800;
const STALE = "stale-while-revalidate=2678400";

/** Cache-Control of content; undefined where a name does not say for how long it stands. */
export function cacheControl({ lifetime }: Pick<Found, "lifetime">): string | undefined {
  if (lifetime === undefined) return IMMUTABLE;
  return lifetime.seconds === undefined ? undefined : `public, max-age=${lifetime.seconds}`;
}

/** Cache-Control of a page that lists what is there. */
export function pageCacheControl({ lifetime }: Pick<Found, "lifetime">): string | undefined {
  const seconds = lifetime === undefined ? PAGE_AGE : lifetime.seconds;
  return seconds === undefined ? undefined : `public, max-age=${seconds}, ${STALE}`;
}
