/** The host that a request is for, as the client sent it, or as trusted proxies report it. */
import { hostName } from "../../../core/http/index.ts";
import type { HttpRequest } from "../../../core/types.ts";

export interface RequestedHost {
  /** The host in lower case, without the port. */
  readonly name: string;
  /** The host as the client sent it, because base58 is case-sensitive. */
  readonly written: string;
  /** The port with its colon, such as `:8080`; empty without a port. */
  readonly port: string;
}

/** Cache, because clients send the same few hosts with every request. */
const known = new Map<string, RequestedHost>();
const MAX_KNOWN = 1000;
/** Maximum length of a host with a port that is cached. */
const MAX_KNOWN_LENGTH = 260;

/** Returns undefined for a request without a host, or with an invalid one. */
export function requestedHost(request: HttpRequest): RequestedHost | undefined {
  const authority = request.forwarded_host ?? request.url.host ?? request.header("host");
  if (authority === undefined) return undefined;
  const found = known.get(authority);
  if (found !== undefined) return found;
  const host = parsed(authority);
  if (known.size >= MAX_KNOWN) known.clear();
  if (host !== undefined && authority.length <= MAX_KNOWN_LENGTH) known.set(authority, host);
  return host;
}

function parsed(authority: string): RequestedHost | undefined {
  const name = hostName(authority);
  if (name === undefined) return undefined;
  return { name, written: authority.slice(0, name.length), port: /:\d+$/.exec(authority)?.[0] ?? "" };
}
