/** Requests that no route of their method matches: OPTIONS and preflights of CORS, 405, 426 and 404. */
import type { HttpRequest, HttpResponse } from "../types.ts";
import { addPreflightHeaders, type CorsPolicy, commonMethods } from "./cors.ts";
import type { Resolution } from "./routes.ts";
import type { HttpEnvironment } from "./settings.ts";
import { upgradeHeaders } from "./upgrade.ts";

interface Service {
  readonly stopping: boolean;
  readonly environment: Pick<HttpEnvironment, "isAwaited">;
}

/** What is asked of an exchange here. */
interface Unrouted {
  readonly request: Pick<HttpRequest, "method">;
  readonly response: Pick<HttpResponse, "headers" | "status_code"> & { send(): unknown };
  readonly service: Service;
  /** Answers with a status and its error page. */
  refuse(status: number): void;
}

/** `preflight`: the request is one, for an app with these rules. */
export function answerUnrouted(
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
    // While the server stops, its apps are no longer there: that is temporary.
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

/** The status where nobody answers: an app that is to come could. */
export const missing = ({ environment }: Pick<Service, "environment">): 404 | 503 =>
  environment.isAwaited?.() === true ? 503 : 404;
