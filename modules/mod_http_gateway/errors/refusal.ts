/** What is wrong with a request, as a status and a sentence. */
import { type FailureCode, NodeError } from "modhost/node";
import type { ResponseHeaders } from "../../../core/types.ts";

export class Refusal extends Error {
  readonly status: number;
  readonly headers: ResponseHeaders;

  constructor(
    status: number,
    message: string,
    { headers = {}, cause }: { headers?: ResponseHeaders; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = status;
    this.headers = headers;
  }
}

/** Seconds after which a client may try again what others kept from being answered. */
const RETRY_SECONDS = 60;

export const tooMany = (): Refusal =>
  new Refusal(429, "There are too many requests at the moment: try again later", {
    headers: { retry_after: RETRY_SECONDS, cache_control: "no-store" },
  });

/** Failures of the node that have a status of their own; all others are 500. */
const statuses: Readonly<Partial<Record<FailureCode, number>>> = {
  BLOCK_NOT_FOUND: 404,
  NODE_NOT_FOUND: 404,
  REFERENCE_BROKEN: 404,
  NO_LINK: 404,
  INVALID_CID: 400,
  INVALID_PATH: 400,
  HASH_INSECURE: 400,
  HASH_SHORT: 400,
  HASH_UNAVAILABLE: 400,
  STORE_CLOSED: 503,
  STORE_FULL: 503,
};

/** A failure while the path was followed, as a refusal; what is nobody's failure but ours comes back as it is. */
export function refusalOf(thrown: unknown, path: string): unknown {
  if (thrown instanceof Refusal) return thrown;
  if (thrown instanceof Error && thrown.name === "TimeoutError") {
    const headers = { retry_after: RETRY_SECONDS };
    return new Refusal(504, `failed to resolve ${path}: nobody had it in time`, { headers, cause: thrown });
  }
  if (!NodeError.is(thrown)) return thrown;
  const status = (thrown.code && statuses[thrown.code]) ?? 500;
  return new Refusal(status, `failed to resolve ${path}: ${thrown.message}`, { cause: thrown });
}
