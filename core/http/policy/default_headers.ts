import type { DefaultHeaders, ResponseHeaders } from "../../types.ts";
import { wireName } from "../../util/header_fields.ts";

export type { DefaultHeaders };

/** Whether the table has the header, in any spelling. */
export function isNamed(headers: ResponseHeaders, wire: string): boolean {
  return namedValue(headers, wire) !== undefined;
}

/**
 * Returns the value of the header, whatever its spelling in the table; undefined where it would not
 * be sent.
 */
export function namedValue(headers: ResponseHeaders, wire: string): ResponseHeaders[string] {
  for (const key in headers) if (isSent(headers[key]) && isSpelling(key, wire)) return headers[key];
  return undefined;
}

/** Removes every spelling of the header from the table. */
export function dropNamed(headers: ResponseHeaders, wire: string): void {
  for (const key of Object.keys(headers)) if (isSpelling(key, wire)) delete headers[key];
}

/**
 * Adds headers to a table. A content type among them replaces one that the table has in another
 * spelling.
 */
export function assignHeaders(table: ResponseHeaders, headers: ResponseHeaders | undefined): void {
  for (const key in table) {
    if (headers === undefined || Object.hasOwn(headers, key) || !isSpelling(key, "Content-Type")) continue;
    if (isNamed(headers, "Content-Type")) delete table[key];
  }
  Object.assign(table, headers);
}

function isSpelling(key: string, wire: string): boolean {
  return key.length === wire.length && (wireName(key) === wire || wireName(key).toLowerCase() === wire.toLowerCase());
}

function isSent(value: unknown): boolean {
  return value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);
}

/**
 * Headers that describe a response and how it may be cached. An error page that replaces the
 * response must not have them.
 */
export const contentHeaders: ReadonlySet<string> = new Set([
  "accept_ranges",
  "age",
  "cache_control",
  "cdn_cache_control",
  "content_digest",
  "content_disposition",
  "content_encoding",
  "content_language",
  "content_length",
  "content_location",
  "content_md5",
  "content_range",
  "content_type",
  "digest",
  "etag",
  "expires",
  "last_modified",
  "pragma",
  "repr_digest",
  "surrogate_control",
]);
