import type { HttpErrorEvent, ResponseHeaders } from "../../types.ts";
import { HttpError, ModhostError } from "../../util/errors.ts";
import { STATUS_CODES } from "../../util/node_http.ts";

/** The part of an error that the client may see. */
export interface Failure {
  readonly status: number;
  /** Text that the client may read. */
  readonly message: string | undefined;
}

/**
 * Classifies a thrown value: a number is the status itself, an error with a `code` from 400 to 599
 * has that status, and anything else has 500.
 */
export function classify(thrown: unknown): Failure {
  if (typeof thrown === "number") return { status: isStatus(thrown) ? thrown : 500, message: undefined };
  if (ModhostError.is(thrown)) return { status: thrown.status, message: thrown.expose ? thrown.message : undefined };
  if (typeof thrown !== "object" || thrown === null) return { status: 500, message: undefined };
  const { code, expose, message } = thrown as { code?: unknown; expose?: unknown; message?: unknown };
  if (typeof code !== "number" || !isErrorStatus(code)) return { status: 500, message: undefined };
  const shown =
    (expose === true || (thrown instanceof HttpError && thrown.expose)) &&
    typeof message === "string" &&
    message !== "";
  return { status: code, message: shown ? message : undefined };
}

function isStatus(code: number): boolean {
  return Number.isInteger(code) && code >= 200 && code <= 999;
}

function isErrorStatus(code: number): boolean {
  return Number.isInteger(code) && code >= 400 && code <= 599;
}

/** Returns the error page for when no hook of `http-error` makes one: one line. */
export function plainPage(
  response: { headers: ResponseHeaders },
  event: Pick<HttpErrorEvent, "code" | "message">,
): string {
  response.headers.content_type = "text/plain; charset=utf-8";
  const phrase = STATUS_CODES[event.code] ?? `Code ${event.code}`;
  return `${event.code} ${phrase}${event.message === undefined ? "" : `: ${event.message}`}\n`;
}
