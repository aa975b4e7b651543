/** What is asked of HTTP/2, without Node's part for it: that is loaded with the first server that speaks it. */
import type { NodeRequest } from "./node_messages.ts";

/** Codes of errors: RFC 9113, section 7. */
export const NO_ERROR = 0;
export const INTERNAL_ERROR = 2;
export const ENHANCE_YOUR_CALM = 11;

export function isHttp2({ httpVersionMajor }: Pick<NodeRequest, "httpVersionMajor">): boolean {
  return httpVersionMajor === 2;
}
