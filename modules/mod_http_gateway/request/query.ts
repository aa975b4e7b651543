/** Parameters of a request that the gateway knows; all others change nothing. */
import type { HttpRequest } from "../../../core/types.ts";

const none = new URLSearchParams();

export function queryOf({ url }: Pick<HttpRequest, "url">): URLSearchParams {
  return url.query === undefined ? none : new URLSearchParams(url.query);
}

/** `?a=b` as it was sent; empty without one. */
export const suffixOf = ({ url }: Pick<HttpRequest, "url">): string => (url.query === undefined ? "" : `?${url.query}`);
