/** Every error of the Admin API by its code, with the status of its response. */
import type { ResponseFields } from "../../core/types.ts";

export const errors = {
  invalid: { status: 400, help: "A field is missing, unknown or has a wrong value" },
  unauthorized: { status: 401, help: "The token is not known, was revoked or has expired" },
  forbidden: { status: 403, help: "This caller, or the page that sends the call, has no permission" },
  page_key: {
    status: 403,
    help: "The request comes from a page that is not the dashboard, or that was loaded before somebody signed in",
  },
  not_found: { status: 404, help: "There is no such operation, or nothing has this name" },
  method_not_allowed: { status: 405, help: "The operation has another method" },
  unknown_token: { status: 404, help: "There is no such token" },
  exists: { status: 409, help: "A token with this name already exists" },
  conflict: { status: 409, help: "It conflicts with the current state" },
  too_large: { status: 413, help: "The body is larger than 1 MiB" },
  unsupported: { status: 415, help: "The body is not JSON" },
  over_limit: { status: 429, help: "The token is over its rate or quota" },
  failed: { status: 500, help: "The server failed; its log has more" },
  timeout: { status: 504, help: "It did not arrive in time" },
  busy: { status: 503, help: "The server is doing as much as it can already" },
} as const satisfies Record<string, { readonly status: number; readonly help: string }>;

export type AdminErrorCode = keyof typeof errors;

const byStatus: ReadonlyMap<number, AdminErrorCode> = new Map([
  [401, "unauthorized"],
  [403, "forbidden"],
  [404, "not_found"],
  [408, "timeout"],
  [409, "conflict"],
  [413, "too_large"],
  [415, "unsupported"],
  [429, "over_limit"],
  [503, "busy"],
  [504, "timeout"],
]);

/** Returns the error code for an error that only has a status. */
export function codeOf(status: number): AdminErrorCode {
  return byStatus.get(status) ?? (status < 500 ? "invalid" : "failed");
}

/** Thrown to respond with an error of the table. The client gets the message. */
export class AdminError extends Error {
  readonly code: AdminErrorCode;
  readonly headers: ResponseFields["headers"];

  constructor(code: AdminErrorCode, message: string, headers: ResponseFields["headers"] = {}) {
    super(message);
    this.code = code;
    this.headers = headers;
  }
}
