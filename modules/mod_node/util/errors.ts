/**
 * Failures of the node. Their texts are those of go-ipfs 0.9.0, letter by letter, wherever it has
 * one for the case: clients compare them.
 *
 * Every failure has a code of the table, which `failures/` declares by subject. Code tells failures
 * apart by their codes, never by their texts, so a code stands for what a caller can react to: many
 * texts can share one, whose text in the table is then `{reason}`. `failure("CODE", details)` makes
 * a failure with the text of the table. The constructor takes another text, for the few places
 * where the reference words a failure differently.
 */
import { callFailures } from "./failures/calls.ts";
import { contentFailures } from "./failures/content.ts";
import { formatFailures } from "./failures/formats.ts";
import { networkFailures } from "./failures/network.ts";
import { storageFailures } from "./failures/storage.ts";

/**
 * The party at fault, as clients see it: an ordinary failure (status 500 of the RPC), an invalid
 * call (400), or something that the node needs and that may be available again in a moment (503).
 */
export type FailureKind = "failure" | "client" | "unavailable";

/** Text by code; `{name}` is replaced by the detail of that name. */
export const failures = {
  ...contentFailures,
  ...formatFailures,
  ...callFailures,
  ...storageFailures,
  ...networkFailures,
} as const;

export type FailureCode = keyof typeof failures;

/** The kind by code; all others are of the kind `failure`. */
export const failureKinds: Readonly<Partial<Record<FailureCode, FailureKind>>> = {
  CID_NOT_PINNABLE: "client",
  DAEMON_NOT_RUNNING: "client",
  IPNS_PUBSUB_OFF: "client",
  STORE_SETTINGS_INVALID: "client",
  COLLECTING: "unavailable",
  NODE_OPENING: "unavailable",
  OBJECT_STORE_UNAVAILABLE: "unavailable",
  SCHEMA_IN_USE: "unavailable",
  SESSION_LOST: "unavailable",
  STORE_READ_ONLY: "unavailable",
  STORE_UNAVAILABLE: "unavailable",
};

/** Seconds to wait before what is unavailable is requested again. */
const RETRY_SECONDS = 5;

/** Values of a failure by name: those in its text, and those that other texts for it may need. */
export type FailureDetails = Readonly<Record<string, string | number>>;

type Details<T extends string> = T extends `${string}{${infer Name}}${infer Rest}` ? Name | Details<Rest> : never;
type DetailsOf<C extends FailureCode> = Record<Details<(typeof failures)[C]>, string | number> & FailureDetails;

const brand = Symbol.for("modhost.NodeError");

export interface FailureOptions {
  /** By default the kind of the code. */
  readonly kind?: FailureKind;
  readonly details?: FailureDetails | undefined;
  readonly cause?: unknown;
}

/** A failure with a code, and with a text for the client. */
export class NodeError extends Error {
  override readonly name = "NodeError";
  readonly [brand] = true;
  readonly code: FailureCode;
  readonly kind: FailureKind;
  /** Undefined if the text is not that of the table. */
  readonly details: FailureDetails | undefined;

  /** Makes a failure with another text than the table has for the code. */
  constructor(code: FailureCode, message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details;
    this.kind = options.kind ?? failureKinds[code] ?? "failure";
  }

  /**
   * Like `instanceof`, but also true for one made by another copy of this package in the same
   * process.
   */
  static is(value: unknown): value is NodeError {
    return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[brand] === true;
  }
}

/**
 * Makes the failure with that code. The compiler checks that `details` has what the text needs, and
 * it may have more; `cause` becomes its cause.
 */
export function failure<C extends FailureCode>(
  code: C,
  ...[details, cause]: [Details<(typeof failures)[C]>] extends [never]
    ? [details?: FailureDetails | undefined, cause?: unknown]
    : [details: DetailsOf<C>, cause?: unknown]
): NodeError {
  const message = failures[code].replace(/\{(\w+)\}/g, (_, name: string) => String(details?.[name]));
  return new NodeError(code, message, { details: details ?? {}, cause });
}

/** Makes a failure with another text, and with the code and the kind of `error`, its cause. */
export function reworded(error: NodeError, message: string, cause: unknown = error): NodeError {
  return new NodeError(error.code, message, { kind: error.kind, cause });
}

/**
 * Returns the seconds after which a call may be tried again, if its failure or a cause of it is of
 * the kind `unavailable`; otherwise undefined.
 */
export function retryAfter(thrown: unknown): number | undefined {
  for (let error = thrown; NodeError.is(error); error = error.cause) {
    if (error.kind === "unavailable") return RETRY_SECONDS;
  }
  return undefined;
}
