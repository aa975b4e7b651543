/** What goes wrong in the node, as the callers of the Admin API are told. */
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

/** Runs what the node does; its failures come out with a status and its own words. */
export async function told<T>(work: () => T | Promise<T>): Promise<T> {
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
    return new HttpError(504, "It did not come in time: peers that have it are not connected, or there are none", {
      cause: error,
      expose: true,
    });
  }
  return error;
}

/** Of the failure itself, or of the one that it tells of. */
function codedStatus(thrown: unknown): number | undefined {
  for (let error = thrown; NodeError.is(error); error = error.cause) {
    if (error.code !== undefined) return statuses[error.code];
  }
  return undefined;
}

/** True for a failure of the node with that code. */
export function isFailure(error: unknown, ...codes: readonly FailureCode[]): boolean {
  return NodeError.is(error) && error.code !== undefined && codes.includes(error.code);
}

/** Longest time that a caller may let the node look for something, in seconds. */
const MAX_TIMEOUT = 600;

/** A signal that also aborts after a time. @throws {HttpError} 400 */
export function within(signal: AbortSignal, seconds: number): AbortSignal {
  if (!(seconds > 0 && seconds <= MAX_TIMEOUT)) {
    throw new HttpError(400, `The field timeout must be a number of seconds of at most ${MAX_TIMEOUT}`);
  }
  return AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000)]);
}
