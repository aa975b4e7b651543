import type { ResponseHeaders } from "../types.ts";

/** Says that the answer depends on one more request header. */
export function addVary(headers: ResponseHeaders, name: string): void {
  const { vary } = headers;
  headers.vary = vary === undefined ? name : `${vary}, ${name}`;
}
