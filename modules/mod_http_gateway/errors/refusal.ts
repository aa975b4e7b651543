/** A refusal of a request: a status and a sentence. */
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

/** Seconds after which a client may retry a request that was refused because of other clients. */
const RETRY_SECONDS = 60;

export const tooMany = (): Refusal =>
  new Refusal(429, "There are too many requests at the moment: try again later", {
    headers: { retry_after: RETRY_SECONDS, cache_control: "no-store" },
  });

/** @param wait seconds until the client may send the next request */
export const tooFast = (wait: number): Refusal =>
  new Refusal(429, "There are too many requests from your address: try again later", {
    headers: { retry_after: wait, cache_control: "no-store" },
  });

export const tooLate = (path: string, cause?: unknown): Refusal =>
  new Refusal(504, `failed to resolve ${path}: no peer sent it in time`, {
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

/** Faults of this server: clients do not get their messages. */
const faults: ReadonlySet<FailureCode> = new Set<FailureCode>([
  "BLOCKSTORE_NOT_FOUND",
  "BLOCK_CORRUPT",
  "BLOCK_MISMATCH",
  "CODEC_UNKNOWN",
  "CODEC_UNREADABLE",
  "FILE_NOT_FOUND",
  "INVALID_PEER_ID",
  "LOCK_LOST",
  "METADATA_DAMAGED",
  "OBJECT_CUT_OFF",
  "OFFLINE",
  "OFFLINE_COMMAND",
  "RECORD_EXPIRED",
  "ROUTING_TABLE_EMPTY",
  "SEGMENT_GONE",
  "SEGMENT_UNREADABLE",
  "STORE_BROKEN",
]);

/** Returns whether the failure has status 500, and a message for the client. */
export const isPlain = ({ code }: NodeError): boolean => statuses[code] === undefined && !faults.has(code);

/** Replacement messages for failures whose own messages name files of this machine. */
const elsewise: Readonly<Partial<Record<FailureCode, string>>> = {
  REFERENCE_BROKEN: "the file that contains its bytes has changed or is missing",
  STORE_FULL: "there is no room to store the fetched block",
};

/** Failures that stand for a block that other nodes may have. */
const absent: ReadonlySet<FailureCode> = new Set<FailureCode>(["BLOCK_NOT_FOUND", "NODE_NOT_FOUND"]);

/**
 * Converts a failure while following the path into a refusal. Returns a fault of this server
 * unchanged. @param offline whether no other node was contacted, which the refusal of a missing
 * block mentions
 */
export function refusalOf(thrown: unknown, path: string, { offline = false } = {}): unknown {
  if (thrown instanceof Refusal || !NodeError.is(thrown)) return thrown;
  const { code, message } = thrown;
  const wait = retryAfter(thrown);
  if (wait !== undefined) {
    const sentence = `failed to resolve ${path}: the store cannot be reached at the moment`;
    return new Refusal(503, sentence, { headers: { retry_after: wait }, cause: thrown });
  }
  if (faults.has(code)) return thrown;
  const status = statuses[code] ?? 500;
  const reason = elsewise[code] ?? message;
  const scope = offline && absent.has(code) ? " on this server, which does not fetch from others" : "";
  return new Refusal(status, `failed to resolve ${path}: ${reason}${scope}`, { cause: thrown });
}
