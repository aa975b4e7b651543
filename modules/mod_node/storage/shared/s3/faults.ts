/**
 * Failed requests: the error that the store returned or the missing response, and whether a retry
 * can help.
 */
import { failure, type NodeError } from "../../../util/errors.ts";
import { retryAfterMs } from "../../../util/retry_after.ts";
import { parseXml, textOf } from "./xml.ts";

/** One failed request. Callers outside this folder get a `NodeError` instead. */
export class S3Fault extends Error {
  override readonly name = "S3Fault";
  /** Undefined when there was no response. */
  readonly status: number | undefined;
  /** Code of S3 (`NoSuchBucket`) or of the connection (`ECONNREFUSED`). */
  readonly code: string;
  /** Milliseconds that the store asks the client to wait. */
  readonly after: number | undefined;

  constructor(
    message: string,
    details: { status?: number | undefined; code: string; after?: number | undefined; cause?: unknown },
  ) {
    super(message, { cause: details.cause });
    this.status = details.status;
    this.code = details.code;
    this.after = details.after;
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    if (this.status === undefined || PASSING_CODES.has(this.code)) return true;
    return this.status === 408 || this.status === 429 || (this.status >= 500 && !LASTING_STATUS.has(this.status));
  }
}

/**
 * Codes of temporary faults whose status suggests otherwise: concurrent writes, an upload that was
 * too slow, or damage in transit.
 */
const PASSING_CODES = new Set([
  "ConditionalRequestConflict",
  "OperationAborted",
  "RequestTimeout",
  "BadDigest",
  "XAmzContentSHA256Mismatch",
  "IncompleteBody",
]);
/** Statuses from 500 on that no retry changes. */
const LASTING_STATUS = new Set([501, 505, 507]);

/** Codes for credentials that are no longer valid. */
export const STALE_CREDENTIALS = new Set([
  "ExpiredToken",
  "InvalidAccessKeyId",
  "InvalidToken",
  "SignatureDoesNotMatch",
  "TokenRefreshRequired",
]);

/**
 * Milliseconds of clock skew beyond which stores refuse signatures. After HEAD, they do not give
 * this reason.
 */
const MAX_SKEW = 15 * 60_000;

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Describes a failed response. `xml` is its body: it can be any text, and is empty after HEAD. */
export function faultOf(status: number, headers: Headers, xml: string, request: string): S3Fault {
  let code = CODES[status] ?? "";
  let message = "";
  try {
    const error = parseXml(xml);
    code = textOf(error, "Code") ?? code;
    message = textOf(error, "Message") ?? "";
  } catch {
    // The status is enough.
  }
  const behind = Date.parse(String(headers.date)) - Date.now();
  if (status === 403 && Math.abs(behind) > MAX_SKEW) {
    code = "RequestTimeTooSkewed";
    message = `the clock of the store is ${Math.round(Math.abs(behind) / 1000)} s ${behind > 0 ? "ahead" : "behind"}`;
  }
  const said = [code, status === 301 ? region(headers) : "", message.slice(0, 300)]
    .filter((part) => part !== "")
    .join(": ");
  return new S3Fault(`${request}: ${status}${said === "" ? "" : ` ${said}`}`, {
    status,
    code,
    after: retryAfterMs(headers["retry-after"]),
  });
}

/** Codes for responses without a body. */
const CODES: Readonly<Record<number, string>> = {
  301: "PermanentRedirect",
  403: "AccessDenied",
  404: "NoSuchKey",
  412: "PreconditionFailed",
};

function region(headers: Headers): string {
  const named = headers["x-amz-bucket-region"];
  return named === undefined ? "" : `the bucket is in the region ${named}`;
}

/**
 * Whether a bucket has reached its quota or the store is full, by the codes of common S3 servers.
 */
const hasNoRoom = ({ status, code }: S3Fault): boolean => status === 507 || /quota|storagefull/i.test(code);

/** Whether somebody has to grant a permission or free space: the request itself is valid. */
const isRefusal = (fault: S3Fault): boolean => [401, 403, 405].includes(fault.status ?? 0) || hasNoRoom(fault);

const REMEDIES: Readonly<Record<string, string>> = {
  NoSuchBucket: "create the bucket, or name another one in node_store",
  AccessDenied:
    "give these credentials the right to read, write, delete and list in this bucket (without the right to list, the store refuses requests for missing objects)",
  InvalidAccessKeyId: "check the credentials, the region and the endpoint",
  SignatureDoesNotMatch: "check the credentials, the region and the endpoint",
  AuthorizationHeaderMalformed: "check the region",
  PermanentRedirect: "name that region, or its endpoint, in node_store",
  RequestTimeTooSkewed: "the clock of this machine is wrong: set it, and synchronize it by NTP",
  NotImplemented: "this store lacks required features: use one that supports conditional writes and multipart uploads",
};

/**
 * Converts a fault to the error for the caller of a request. `writes` says whether the request
 * writes.
 */
export function errorOf(fault: S3Fault, writes: boolean): NodeError {
  if (fault.isTemporary) return failure("STORE_UNAVAILABLE", { reason: fault.message }, fault);
  const remedy = hasNoRoom(fault) ? "raise the quota of the bucket, or make room in the store" : REMEDIES[fault.code];
  const reason = remedy === undefined ? fault.message : `${fault.message.replace(/\.$/, "")}. Remedy: ${remedy}`;
  if (!isRefusal(fault)) return failure("OBJECT_STORE_FAULT", { reason }, fault);
  return writes
    ? failure("STORE_READ_ONLY", { reason }, fault)
    : failure("OBJECT_STORE_UNAVAILABLE", { reason }, fault);
}
