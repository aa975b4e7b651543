import type { CorsSettings, ResponseHeaders } from "../types.ts";

/** What a preflight may announce for middleware, which tells nobody what it answers. */
export const commonMethods = ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"] as const;

/** The CORS rules of one app, all settings taken together. */
export interface CorsPolicy {
  readonly credentials: boolean;
  readonly origins: ReadonlySet<string> | "*";
  /** Request headers that a page may set. */
  readonly headers: readonly string[];
  /** Seconds for which a browser may remember the answer to a preflight. */
  readonly maxAge: number;
}

/**
 * Settings over defaults, the later ones first in rank; undefined when the last word is "off". Credentials need origins
 * by name.
 */
export function corsPolicy(maxAge: number, layers: readonly (CorsSettings | undefined)[]): CorsPolicy | undefined {
  const merged: { -readonly [K in keyof CorsSettings]: CorsSettings[K] } = {};
  const headers: Record<string, boolean> = { "Content-Type": true };
  for (const layer of layers) {
    if (layer === undefined) continue;
    Object.assign(merged, Object.fromEntries(Object.entries(layer).filter(([, value]) => value !== undefined)));
    Object.assign(headers, layer.headers);
  }
  if (merged.enabled !== true) return undefined;
  const origins = merged.origins ?? "*";
  return {
    // With any origin allowed, credentials would hand every site what its visitors may see.
    credentials: (merged.credentials ?? false) && origins !== "*" && !origins.includes("*"),
    origins: origins === "*" || origins.includes("*") ? "*" : new Set(origins),
    headers: Object.keys(headers).filter((name) => headers[name]),
    maxAge,
  };
}

/** Adds what an answer to this origin carries; false when the origin may not read it. */
export function addCorsHeaders(policy: CorsPolicy, origin: string | undefined, headers: ResponseHeaders): boolean {
  if (policy.origins !== "*" && (origin === undefined || !policy.origins.has(origin))) return false;
  headers.access_control_allow_origin = policy.origins === "*" ? "*" : origin;
  if (policy.credentials) headers.access_control_allow_credentials = "true";
  return true;
}

/** Adds the answer to a preflight. */
export function addPreflightHeaders(policy: CorsPolicy, methods: readonly string[], headers: ResponseHeaders): void {
  headers.access_control_allow_methods = methods.join(", ");
  headers.access_control_allow_headers = policy.headers.join(", ");
  headers.access_control_max_age = policy.maxAge;
}
