import type { Stats } from "node:fs";
import type { RequestHeaders } from "../types.ts";

/** What tells one state of a file from another (RFC 9110 8.8). */
export interface Validators {
  /** A strong entity tag, quotes included. */
  readonly etag: string;
  /** Milliseconds, whole seconds only, as dates on the wire have no more. */
  readonly modified: number;
}

/** Tag of time and size; `coding` tells the precompressed forms of a file apart. */
export function validatorsOf(stats: Stats, coding = ""): Validators {
  const time = Math.round(stats.mtimeMs * 1000).toString(16);
  return {
    etag: `"${time}-${stats.size.toString(16)}${coding && `-${coding}`}"`,
    modified: Math.floor(stats.mtimeMs / 1000) * 1000,
  };
}

/** The preconditions of a GET or HEAD in the order of RFC 9110 13.2.2: 412, 304, or undefined to go on. */
export function precondition(headers: RequestHeaders, { etag, modified }: Validators): 304 | 412 | undefined {
  const { if_match, if_unmodified_since, if_none_match, if_modified_since } = headers;
  if (if_match !== undefined) {
    if (!holdsTag(if_match, etag, false)) return 412;
  } else if (modified > dateOf(if_unmodified_since)) return 412;
  if (if_none_match !== undefined) return holdsTag(if_none_match, etag, true) ? 304 : undefined;
  return modified <= dateOf(if_modified_since) ? 304 : undefined;
}

/** May the ranges of the request be answered? If-Range asks for the very same state, by tag or date (13.1.5). */
export function rangeHolds(ifRange: string | undefined, { etag, modified }: Validators, now = Date.now()): boolean {
  if (ifRange === undefined) return true;
  if (ifRange.includes('"')) return ifRange.trim() === etag;
  // A date tells states apart only when no second change can have come within the same second.
  return dateOf(ifRange) === modified && now - modified >= 1000;
}

function holdsTag(list: string, etag: string, weakly: boolean): boolean {
  if (list.trim() === "*") return true;
  for (const [whole, weak, tag] of list.matchAll(/(W\/)?("[^"]*")/g)) {
    if ((weakly && weak !== undefined ? tag : whole) === etag) return true;
  }
  return false;
}

/** NaN, which no comparison holds for, where there is no date. */
function dateOf(text: string | undefined): number {
  if (text === undefined) return Number.NaN;
  if (text.endsWith("GMT")) return Date.parse(text);
  return /^\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$/.test(text) ? Date.parse(`${text} GMT`) : Number.NaN;
}
