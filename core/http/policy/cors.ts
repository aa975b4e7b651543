import type { CorsSettings, HttpRequest, ResponseHeaders } from "../../types.ts";

/** Methods that a preflight announces for middleware, whose own methods are unknown. */
export const commonMethods = ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"] as const;

/** The CORS rules of one app, merged from all settings. */
export interface CorsPolicy {
  readonly credentials: boolean;
  readonly origins: ReadonlySet<string> | "*";
  /** Request headers that a page may set. */
  readonly headers: readonly string[];
  /** Seconds for which a browser may cache the response to a preflight. */
  readonly maxAge: number;
}

/**
 * Merges settings: later layers replace earlier ones. Returns undefined when CORS is off in the
 * end. Credentials need origins that are listed by name.
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
    // If any origin were allowed, credentials would give every site what its visitors may see.
    credentials: (merged.credentials ?? false) && origins !== "*" && !origins.includes("*"),
    origins: origins === "*" || origins.includes("*") ? "*" : new Set(origins),
    headers: Object.keys(headers).filter((name) => headers[name]),
    maxAge,
  };
}

interface CorsExchange {
  readonly request: Pick<HttpRequest, "header">;
  readonly response: { variesByOrigin: boolean; readonly headers: ResponseHeaders };
}

/**
 * Adds the CORS headers to a response. Returns false when pages of the request's origin may not
 * read it.
 */
export function admitOrigin(cors: CorsPolicy | undefined, { request, response }: CorsExchange): boolean {
  response.variesByOrigin = cors !== undefined && cors.origins !== "*";
  return cors !== undefined && addCorsHeaders(cors, request.header("origin"), response.headers);
}

export function isPreflight(request: Pick<HttpRequest, "method" | "header">): boolean {
  return request.method === "OPTIONS" && request.header("access-control-request-method") !== undefined;
}

function addCorsHeaders(policy: CorsPolicy, origin: string | undefined, headers: ResponseHeaders): boolean {
  if (policy.origins !== "*" && (origin === undefined || !policy.origins.has(origin))) return false;
  headers.access_control_allow_origin = policy.origins === "*" ? "*" : origin;
  if (policy.credentials) headers.access_control_allow_credentials = "true";
  return true;
}

/** Adds the headers of a response to a preflight. */
export function addPreflightHeaders(policy: CorsPolicy, methods: readonly string[], headers: ResponseHeaders): void {
  headers.access_control_allow_methods = methods.join(", ");
  headers.access_control_allow_headers = policy.headers.join(", ");
  headers.access_control_max_age = policy.maxAge;
}
