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

/** Clients send the same few with every request. */
const known = new Map<string, AskedHost>();
const MAX_KNOWN = 1000;
/** Characters of any host and port. */
const MAX_KNOWN_LENGTH = 260;

/** Undefined for a request without a host, or with one that cannot be. */
export function askedHost(request: HttpRequest): AskedHost | undefined {
  const authority = request.forwarded_host ?? request.url.host ?? request.headers.host;
  if (authority === undefined) return undefined;
  const found = known.get(authority);
  if (found !== undefined) return found;
  const host = parsed(authority);
  if (known.size >= MAX_KNOWN) known.clear();
  if (host !== undefined && authority.length <= MAX_KNOWN_LENGTH) known.set(authority, host);
  return host;
}

function parsed(authority: string): AskedHost | undefined {
  const name = hostName(authority);
  if (name === undefined) return undefined;
  return { name, written: authority.slice(0, name.length), port: /:\d+$/.exec(authority)?.[0] ?? "" };
}
