/** What is wrong with a request, as a status and a sentence. */
import { type FailureCode, NodeError, retryAfter } from "modhost/node";
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

/** @param wait seconds until the client may ask again */
export const tooFast = (wait: number): Refusal =>
  new Refusal(429, "There are too many requests from your address: try again later", {
    headers: { retry_after: wait, cache_control: "no-store" },
  });

export const tooLate = (path: string, cause?: unknown): Refusal =>
  new Refusal(504, `failed to resolve ${path}: nobody had it in time`, {
    headers: { retry_after: RETRY_SECONDS },
    cause,
  });

/** Failures of the node that have a status of their own. */
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
  CONTENT_BLOCKED: 410,
  CONTENT_BLOCKED_LEGALLY: 451,
  NAME_NOT_FOUND: 500,
  STORE_CLOSED: 503,
  STORE_FULL: 503,
};

/** Failures whose own words name files of this machine, in the words of others. */
const elsewise: Readonly<Partial<Record<FailureCode, string>>> = {
  REFERENCE_BROKEN: "its bytes are no longer where they were added from",
  STORE_FULL: "there is no room for what is fetched",
};

/** Blocks that others may have. */
const absent: ReadonlySet<FailureCode | undefined> = new Set(["BLOCK_NOT_FOUND", "NODE_NOT_FOUND"]);

/**
 * A failure while the path was followed, as a refusal; what is a fault of this server comes back as it is.
 *
 * @param offline no other node was asked, which the refusal says of a block that is missing
 */
export function refusalOf(thrown: unknown, path: string, { offline = false } = {}): unknown {
  if (thrown instanceof Refusal || !NodeError.is(thrown)) return thrown;
  const { code, message } = thrown;
  const wait = retryAfter(thrown);
  if (wait !== undefined) {
    const sentence = `failed to resolve ${path}: the store cannot be reached at the moment`;
    return new Refusal(503, sentence, { headers: { retry_after: wait }, cause: thrown });
  }
  const status = code === undefined ? 500 : statuses[code];
  if (status === undefined) return thrown;
  const reason = (code && elsewise[code]) ?? message;
  const scope = offline && absent.has(code) ? " on this server, which fetches nothing from others" : "";
  return new Refusal(status, `failed to resolve ${path}: ${reason}${scope}`, { cause: thrown });
}
