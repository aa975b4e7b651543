import type { DefaultHeaders, ResponseHeaders } from "../types.ts";
import { wireName } from "../util/header_fields.ts";

export type { DefaultHeaders };

/** True when the table has the header, in whichever spelling. */
export function isNamed(headers: ResponseHeaders, wire: string): boolean {
  return namedValue(headers, wire) !== undefined;
}

/** The value of the header of that name, in whatever spelling it is there. */
export function namedValue(headers: ResponseHeaders, wire: string): ResponseHeaders[string] {
  for (const key in headers) if (headers[key] !== undefined && wireName(key) === wire) return headers[key];
  return undefined;
}

/** Adds a header that the table does not have in any spelling. */
export function addDefault(headers: ResponseHeaders, name: string, value: string): void {
  if (headers[name] === undefined && !isNamed(headers, wireName(name))) headers[name] = value;
}
