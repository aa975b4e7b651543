/** The host that a request is for: what the client asked, as proxies that are trusted tell it. */
import { hostName } from "../../../core/http/index.ts";
import type { HttpRequest } from "../../../core/types.ts";

export interface AskedHost {
  /** Lower case, without port. */
  readonly name: string;
  /** As it was written: base58 is not the same in lower case. */
  readonly written: string;
  /** `:8080`, or empty. */
  readonly port: string;
}

/** Undefined for a request without a host, or with one that cannot be. */
export function askedHost(request: HttpRequest): AskedHost | undefined {
  const { headers } = request;
  const authority = request.forwarded_host ?? request.url.host ?? headers.host;
  const name = authority === undefined ? undefined : hostName(authority);
  if (authority === undefined || name === undefined) return undefined;
  return { name, written: authority.slice(0, name.length), port: /:\d+$/.exec(authority)?.[0] ?? "" };
}
