import type { DefaultHeaders, ResponseHeaders } from "../types.ts";
import { wireName } from "../util/header_fields.ts";

export type { DefaultHeaders };

/** True when the table has the header, in whichever spelling. */
export function isNamed(headers: ResponseHeaders, wire: string): boolean {
  for (const key in headers) if (headers[key] !== undefined && wireName(key) === wire) return true;
  return false;
}

/** Adds a header that the table does not have in any spelling. */
export function addDefault(headers: ResponseHeaders, name: string, value: string): void {
  if (headers[name] === undefined && !isNamed(headers, wireName(name))) headers[name] = value;
}
