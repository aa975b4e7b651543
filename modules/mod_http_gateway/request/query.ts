/** Query parameters that the gateway knows. It ignores all others. */
import type { HttpRequest } from "../../../core/types.ts";

const none = new URLSearchParams();

export function queryOf({ url }: Pick<HttpRequest, "url">): URLSearchParams {
  return url.query === undefined ? none : new URLSearchParams(url.query);
}

/** Returns the query as it was sent, such as `?a=b`; empty without one. */
export const suffixOf = ({ url }: Pick<HttpRequest, "url">): string => (url.query === undefined ? "" : `?${url.query}`);
