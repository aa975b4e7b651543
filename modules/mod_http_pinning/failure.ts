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

/** What the service needs is away; @param wait seconds until it may be back */
export function unavailableAnswer(details: string, wait: number): ResponseFields {
  const answer = failureAnswer(new ApiFailure("SERVICE_UNAVAILABLE", details));
  return { ...answer, headers: { ...answer.headers, retry_after: wait } };
}

export const badRequest = (details: string) => new ApiFailure("BAD_REQUEST", details);

export function failureAnswer({ reason, message: details }: ApiFailure): ResponseFields {
  const answer = json(statuses[reason], { error: { reason, details } });
  return reason === "UNAUTHORIZED" ? { ...answer, headers: { ...answer.headers, www_authenticate: "Bearer" } } : answer;
}

const reasons = { 401: "UNAUTHORIZED", 403: "FORBIDDEN", 429: "TOO_MANY_REQUESTS" } as const satisfies Record<
  TokenRefusal["status"],
  string
>;

/** A token of the server that is not let in. */
export function refusalAnswer({ status, message, headers }: TokenRefusal): ResponseFields {
  const answer = json(status, { error: { reason: reasons[status], details: message } });
  return { ...answer, headers: { ...answer.headers, ...headers } };
}

export function json(status_code: number, value: object): ResponseFields {
  const headers = { content_type: "application/json", cache_control: "no-store" };
  return { status_code, headers, body: JSON.stringify(value) };
}
