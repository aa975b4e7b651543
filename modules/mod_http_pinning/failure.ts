/** Error responses of the pinning service API. */
import type { ResponseFields, TokenRefusal } from "../../core/types.ts";

const statuses = {
  BAD_REQUEST: 400,
  UNAUTHORIZED: 401,
  NOT_FOUND: 404,
  INTERNAL_SERVER_ERROR: 500,
  SERVICE_UNAVAILABLE: 503,
} as const;

export class ApiFailure extends Error {
  readonly reason: keyof typeof statuses;

  /** `details` is a message for people. */
  constructor(reason: keyof typeof statuses, details: string) {
    super(details);
    this.reason = reason;
  }
}

/**
 * Responds that a service is temporarily unavailable. @param wait seconds until it may be available
 * again
 */
export function unavailableResponse(details: string, wait: number): ResponseFields {
  const response = failureResponse(new ApiFailure("SERVICE_UNAVAILABLE", details));
  return { ...response, headers: { ...response.headers, retry_after: wait } };
}

export const badRequest = (details: string) => new ApiFailure("BAD_REQUEST", details);

export function failureResponse({ reason, message: details }: ApiFailure): ResponseFields {
  const response = json(statuses[reason], { error: { reason, details } });
  return reason === "UNAUTHORIZED"
    ? { ...response, headers: { ...response.headers, www_authenticate: "Bearer" } }
    : response;
}

const reasons = { 401: "UNAUTHORIZED", 403: "FORBIDDEN", 429: "TOO_MANY_REQUESTS" } as const satisfies Record<
  TokenRefusal["status"],
  string
>;

/** Responds to a server token that has no access. */
export function refusalResponse({ status, message, headers }: TokenRefusal): ResponseFields {
  const response = json(status, { error: { reason: reasons[status], details: message } });
  return { ...response, headers: { ...response.headers, ...headers } };
}

export function json(status_code: number, value: object): ResponseFields {
  const headers = { content_type: "application/json", cache_control: "no-store" };
  return { status_code, headers, body: JSON.stringify(value) };
}
