/** Converts failures of the node into errors of the Admin API. */
import { type FailureCode, NodeError, retryAfter } from "modhost/node";
import { HttpError } from "../../core/index.ts";

const statuses: Readonly<Partial<Record<FailureCode, number>>> = {
  BLOCK_NOT_FOUND: 404,
  BLOCKSTORE_NOT_FOUND: 404,
  NODE_NOT_FOUND: 404,
  NO_LINK: 404,
  FILE_NOT_FOUND: 404,
  NAME_NOT_FOUND: 404,
  OFFLINE: 409,
  OFFLINE_COMMAND: 409,
  ROUTING_TABLE_EMPTY: 409,
  STORE_FULL: 507,
  STORE_BROKEN: 500,
  STORE_CLOSED: 503,
};

/** Runs work of the node. A failure gets an HTTP status, and keeps the node's message. */
export async function withHttpStatus<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw statusOf(error);
  }
}

function statusOf(error: unknown): unknown {
  if (NodeError.is(error)) {
    const status = retryAfter(error) === undefined ? (codedStatus(error) ?? 400) : 503;
    return new HttpError(status, error.message, { cause: error, expose: true });
  }
  if (error instanceof Error && error.name === "TimeoutError") {
    return new HttpError(504, "It was not found in time: no connected peer has it", {
      cause: error,
      expose: true,
    });
  }
  return error;
}

/** Returns the status for the error's code, or for the code of one of its causes. */
function codedStatus(thrown: unknown): number | undefined {
  for (let error = thrown; NodeError.is(error); error = error.cause) {
    const status = statuses[error.code];
    if (status !== undefined) return status;
  }
  return undefined;
}

/** Returns whether the error is a failure of the node with one of these codes. */
export function isFailure(error: unknown, ...codes: readonly FailureCode[]): boolean {
  return NodeError.is(error) && codes.includes(error.code);
}

/** Maximum time in seconds that a caller may let the node search. */
const MAX_TIMEOUT = 600;

/** Returns a signal that also aborts after a time. @throws {HttpError} 400 */
export function within(signal: AbortSignal, seconds: number): AbortSignal {
  if (!(seconds > 0 && seconds <= MAX_TIMEOUT)) {
    throw new HttpError(400, `The field timeout must be a number of seconds of at most ${MAX_TIMEOUT}`);
  }
  return AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000)]);
}
