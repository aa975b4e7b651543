import type { Stats } from "node:fs";
import type { HttpRequest } from "../../types.ts";

/** Identifies one state of a file (RFC 9110, 8.8). */
export interface Validators {
  /** A strong entity tag, quotes included. */
  readonly etag: string;
  /** Milliseconds, rounded down to whole seconds, because dates on the wire have no fractions. */
  readonly modified: number;
}

/** Computes the tag from time and size. `coding` distinguishes precompressed forms of a file. */
export function validatorsOf(stats: Stats, coding = ""): Validators {
  const time = Math.round(stats.mtimeMs * 1000).toString(16);
  return {
    etag: `"${time}-${stats.size.toString(16)}${coding && `-${coding}`}"`,
    modified: Math.floor(stats.mtimeMs / 1000) * 1000,
  };
}

/**
 * Evaluates the preconditions of a GET or HEAD in the order of RFC 9110, 13.2.2. Returns 412, 304,
 * or undefined to continue.
 */
export function precondition(
  request: Pick<HttpRequest, "header">,
  { etag, modified }: Validators,
): 304 | 412 | undefined {
  const match = request.header("if-match");
  if (match !== undefined) {
    if (!matchesTag(match, etag, false)) return 412;
  } else if (modified > dateOf(request.header("if-unmodified-since"))) return 412;
  const noneMatch = request.header("if-none-match");
  if (noneMatch !== undefined) return matchesTag(noneMatch, etag, true) ? 304 : undefined;
  return modified <= dateOf(request.header("if-modified-since")) ? 304 : undefined;
}

/**
 * Whether the ranges of the request may be served. If-Range requires the same state of the file, by
 * tag or date (13.1.5).
 */
export function rangeApplies(ifRange: string | undefined, { etag, modified }: Validators, now = Date.now()): boolean {
  if (ifRange === undefined) return true;
  if (ifRange.includes('"')) return ifRange.trim() === etag;
  // A date identifies a state only when no second change can have happened within the same second.
  return dateOf(ifRange) === modified && now - modified >= 1000;
}

function matchesTag(list: string, etag: string, weakly: boolean): boolean {
  if (list.trim() === "*") return true;
  for (const [whole, weak, tag] of list.matchAll(/(W\/)?("[^"]*")/g)) {
    if ((weakly && weak !== undefined ? tag : whole) === etag) return true;
  }
  return false;
}

/** Returns NaN when there is no date, so that every comparison is false. */
function dateOf(text: string | undefined): number {
  if (text === undefined) return Number.NaN;
  if (text.endsWith("GMT")) return Date.parse(text);
  return /^\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$/.test(text) ? Date.parse(`${text} GMT`) : Number.NaN;
}
