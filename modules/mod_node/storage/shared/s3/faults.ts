/** Requests that failed: what the store answered, or that it did not, and whether a repetition can help. */
import { failure, NodeError } from "../../../util/errors.ts";
import { retryAfterMs } from "../../../util/retry_after.ts";
import { parseXml, textOf } from "./xml.ts";

/** One request that did not succeed; clients of the room get a `NodeError` in its place. */
export class S3Fault extends Error {
  override readonly name = "S3Fault";
  /** Undefined without an answer. */
  readonly status: number | undefined;
  /** That of S3 (`NoSuchBucket`), or of the connection (`ECONNREFUSED`). */
  readonly code: string;
  /** Milliseconds that the store asks to be left alone for. */
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
  get passes(): boolean {
    if (this.status === undefined || PASSING_CODES.has(this.code)) return true;
    return this.status === 408 || this.status === 429 || (this.status >= 500 && !LASTING_STATUS.has(this.status));
  }
}

/** With statuses that say otherwise: two wrote at once, an upload that was too slow or damaged on its way. */
const PASSING_CODES = new Set([
  "ConditionalRequestConflict",
  "OperationAborted",
  "RequestTimeout",
  "BadDigest",
  "XAmzContentSHA256Mismatch",
  "IncompleteBody",
]);
/** Of the statuses from 500 on, those that no repetition changes. */
const LASTING_STATUS = new Set([501, 505, 507]);

/** Codes that say that the credentials are no longer good. */
export const STALE_CREDENTIALS = new Set([
  "ExpiredToken",
  "InvalidAccessKeyId",
  "InvalidToken",
  "SignatureDoesNotMatch",
  "TokenRefreshRequired",
]);

/** Stores refuse what is signed with a clock that is off by more, in milliseconds; after HEAD they do not say so. */
const MAX_SKEW = 15 * 60_000;

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** `xml` is the body, which may be anything, and is nothing after HEAD. */
export function faultOf(status: number, headers: Headers, xml: string, request: string): S3Fault {
  let [code, message] = [CODES[status] ?? "", ""];
  try {
    const error = parseXml(xml);
    code = textOf(error, "Code") ?? code;
    message = textOf(error, "Message") ?? "";
  } catch {
    // The status says enough.
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

/** Where there is no body. */
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

/** Quotas of buckets, and stores without room, as the programs that serve S3 call them. */
const hasNoRoom = ({ status, code }: S3Fault): boolean => status === 507 || /quota|storagefull/i.test(code);

/** What somebody has to allow, or to make room for: nothing is wrong with the request. */
const isRefusal = (fault: S3Fault): boolean => [401, 403, 405].includes(fault.status ?? 0) || hasNoRoom(fault);

const REMEDIES: Readonly<Record<string, string>> = {
  NoSuchBucket: "create the bucket, or name another one in node_store",
  AccessDenied:
    "give these credentials the right to read, write, delete and list in this bucket (without the right to list, what is missing is refused, too)",
  InvalidAccessKeyId: "check the credentials, the region and the endpoint",
  SignatureDoesNotMatch: "check the credentials, the region and the endpoint",
  AuthorizationHeaderMalformed: "check the region",
  PermanentRedirect: "name that region, or its endpoint, in node_store",
  RequestTimeTooSkewed: "the clock of this machine is wrong: set it, and keep it right by NTP",
  NotImplemented: "this store lacks what is needed: use one that knows conditional writes and multipart uploads",
};

/** What the caller of a request is told, which writes or does not. */
export function told(fault: S3Fault, writes: boolean): NodeError {
  if (fault.passes) return failure("STORE_UNAVAILABLE", { reason: fault.message }, fault);
  const remedy = hasNoRoom(fault) ? "raise the quota of the bucket, or make room in the store" : REMEDIES[fault.code];
  const reason = remedy === undefined ? fault.message : `${fault.message.replace(/\.$/, "")}. Remedy: ${remedy}`;
  if (!isRefusal(fault)) return new NodeError(reason, { cause: fault });
  return writes
    ? failure("STORE_READ_ONLY", { reason }, fault)
    : new NodeError(reason, { kind: "unavailable", cause: fault });
}
