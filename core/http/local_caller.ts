/** Who may ask without a secret: programs of this machine, and no page that a browser was led to. */
import { BlockList, isIP } from "node:net";
import type { HttpRequest } from "../types.ts";

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Is it an address of this machine alone? */
export function isLoopback(address: string): boolean {
  const family = isIP(address);
  // Fast path for IPv4: BlockList parses the address on each check, and IPv4 has only one notation.
  return family === 4 ? address.startsWith("127.") : family === 6 && loopback.check(address, "ipv6");
}

/** Did a proxy hand it on, by its header fields with dashes or underscores? Whoever stands behind it, its own address says nothing of the caller. */
export function isForwarded({ headers }: { readonly headers: object }): boolean {
  for (const name in headers) {
    const first = name.charCodeAt(0);
    if ((first === X || first === F || first === V) && forwarding.test(name)) return true;
  }
  return false;
}

const forwarding = /^(?:forwarded$|via$|x[_-]real[_-]ip$|x[_-]forwarded[_-])/;
/** Of most names the first letter says enough: this is asked of each request. */
const [F, V, X] = Array.from("fvx", (letter) => letter.charCodeAt(0));

/** The host name in the request, without port, in lower case; undefined if there is none. */
function requestedHost({ url, headers }: Pick<HttpRequest, "url" | "headers">): string | undefined {
  const authority = url.host ?? headers.host;
  const [, bracketed, name] = /^(?:\[([^\]]*)\]|([^:]*))/.exec(authority ?? "") ?? [];
  const host = (bracketed ?? name ?? "").toLowerCase().replace(/\.$/, "");
  return host === "" ? undefined : host;
}

/** Why a request without a secret is not taken for one of a program of this machine. */
export type StrangerReason = "other machine" | "proxy" | "foreign name";

export interface LocalCallers {
  /** Names, in lower case, that are this machine's beside localhost and its addresses. */
  readonly hosts: ReadonlySet<string>;
  /** Addresses whose programs count as well. Default: those of this machine alone. */
  readonly includes?: (address: string) => boolean;
  /** Addresses of connections whose requests count, whomever they are of: of a proxy that decides that itself. Default: none. */
  readonly relays?: (address: string) => boolean;
}

/**
 * Undefined for a caller who needs no secret: from one of the addresses, through no proxy, and by a name that no name
 * server of somebody else gives to this machine, since a page could be made to ask by that (rebinding). A request that names
 * no host is no browser's.
 */
export function strangerReason(
  request: HttpRequest,
  { hosts, includes = isLoopback, relays }: LocalCallers,
): StrangerReason | undefined {
  const isRelay = relays?.(request.conn.ip()) === true;
  if (!isRelay) {
    if (!includes(request.ip)) return "other machine";
    if (isForwarded(request)) return "proxy";
  }
  const host = requestedHost(request);
  const isOwn = host === undefined || host === "localhost" || isLoopback(host) || hosts.has(host);
  // Who asks from another machine, or for somebody there, names this one by an address, which no name server gives.
  return isOwn || (isIP(host) !== 0 && (isRelay || !isLoopback(request.ip))) ? undefined : "foreign name";
}
