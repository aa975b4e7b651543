/**
 * Responds to requests without a route for their method: OPTIONS and CORS preflights, 405, 426 and
 * 404.
 */
import type { HttpRequest, HttpResponse } from "../../types.ts";
import { upgradeHeaders } from "../connection/upgrade.ts";
import { addPreflightHeaders, type CorsPolicy, commonMethods } from "../policy/cors.ts";
import type { Resolution } from "../routing/routes.ts";
import type { HttpEnvironment } from "../settings.ts";

interface Service {
  readonly stopping: boolean;
  readonly environment: Pick<HttpEnvironment, "isAwaited">;
}

/** The part of an exchange that this file uses. */
interface Unrouted {
  readonly request: Pick<HttpRequest, "method">;
  readonly response: Pick<HttpResponse, "headers" | "status_code"> & { send(): unknown };
  readonly service: Service;
  /** Responds with a status and its error page. */
  refuse(status: number): void;
}

/**
 * Responds to a request that no route serves. `preflight`: the CORS rules of the app, when the
 * request is a preflight.
 */
export function respondUnrouted(
  exchange: Unrouted,
  { allowed, candidates, upgradable }: Resolution,
  preflight?: CorsPolicy,
): void {
  const { request, response } = exchange;
  if (upgradable && (request.method === "GET" || request.method === "HEAD")) {
    Object.assign(response.headers, upgradeHeaders);
    exchange.refuse(426);
    return;
  }
  const methods = new Set(allowed);
  if (preflight !== undefined && candidates.length > 0) for (const method of commonMethods) methods.add(method);
  if (methods.size === 0) {
    // A stopping server has no apps, which is temporary.
    const { service } = exchange;
    exchange.refuse(service.stopping && candidates.length === 0 ? 503 : missing(service));
    return;
  }
  const sorted = [...methods.add("OPTIONS")].sort();
  response.headers.allow = sorted.join(", ");
  if (request.method !== "OPTIONS") {
    exchange.refuse(405);
    return;
  }
  if (preflight !== undefined) addPreflightHeaders(preflight, sorted, response.headers);
  response.status_code = preflight === undefined ? 200 : 204;
  response.send();
}

/**
 * The status when no handler responds: 503 while an app that could respond is still to be loaded.
 */
export const missing = ({ environment }: Pick<Service, "environment">): 404 | 503 =>
  environment.isAwaited?.() === true ? 503 : 404;
