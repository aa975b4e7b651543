/** Validates responses of a pinning service (IPFS Pinning Service API 1.0). */
import { parseCid } from "../../formats/cid/text.ts";
import { isObject, type JsonObject } from "../../storage/repo/json.ts";
import { failure } from "../../util/errors.ts";

export const pinStatuses = ["queued", "pinning", "pinned", "failed"] as const;
export type PinStatusWord = (typeof pinStatuses)[number];

export const isPinStatus = (word: string): word is PinStatusWord => (pinStatuses as readonly string[]).includes(word);

/** A pin at a service. */
export interface RemotePin {
  readonly requestId: string;
  /** Empty if the service sends none. */
  readonly status: PinStatusWord | "";
  /** RFC 3339, as the service has written it. */
  readonly created: string;
  /** Normalized; a text that is not a CID stays unchanged. */
  readonly cid: string;
  readonly name: string;
  /** Multiaddresses, not validated. */
  readonly delegates: readonly string[];
}

export interface RemotePinPage {
  /** Total number of matching pins, including those of this page. */
  readonly count: number;
  readonly pins: readonly RemotePin[];
}

const EMPTY: JsonObject = {};
/** Time of a pin without a time: Go's zero value. */
const ZERO_TIME = "0001-01-01T00:00:00Z";

function field<T>(
  of: JsonObject,
  name: string,
  expected: string,
  matches: (value: unknown) => value is T,
  missing: T,
): T {
  const value = of[name] ?? undefined;
  if (value === undefined) return missing;
  if (matches(value)) return value;
  throw failure("PINNING_SERVICE_FAILED", { reason: `the field ${name} must be ${expected}` });
}

const isText = (value: unknown): value is string => typeof value === "string";
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value);

/** @throws NodeError for a field of the wrong type, an unknown status, or an invalid time */
export function readPin(value: unknown): RemotePin {
  if (!isObject(value)) throw failure("PINNING_SERVICE_FAILED", { reason: "a pin must be an object" });
  const pin = field(value, "pin", "an object", isObject, EMPTY);
  const status = field(value, "status", "text", isText, "");
  if (status !== "" && !isPinStatus(status))
    throw failure("PINNING_SERVICE_FAILED", { reason: `${status} is not a valid Status` });
  const created = field(value, "created", "text", isText, ZERO_TIME);
  if (Number.isNaN(Date.parse(created)))
    throw failure("PINNING_SERVICE_FAILED", { reason: `the field created must be a time` });
  return {
    requestId: field(value, "requestid", "text", isText, ""),
    status,
    created,
    cid: normalized(field(pin, "cid", "text", isText, "")),
    name: field(pin, "name", "text", isText, ""),
    delegates: field(value, "delegates", "a list", isList, []).filter(isText),
  };
}

function normalized(cid: string): string {
  try {
    return parseCid(cid).toString();
  } catch {
    return cid;
  }
}

/** @throws NodeError as `readPin` */
export function readPage(value: unknown): RemotePinPage {
  if (!isObject(value)) throw failure("PINNING_SERVICE_FAILED", { reason: "a list of pins must be an object" });
  return {
    count: field(value, "count", "a count", isCount, 0),
    pins: field(value, "results", "a list", isList, []).map(readPin),
  };
}

/** Returns reason and details of an error; empty if they are missing. */
export function readFailure(value: unknown): { readonly reason: string; readonly details: string } {
  const error = isObject(value) && isObject(value.error) ? value.error : EMPTY;
  const { reason, details } = error;
  return { reason: isText(reason) ? reason : "", details: isText(details) ? details : "" };
}
