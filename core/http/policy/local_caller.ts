/**
 * Decides which requests need no secret: those of programs on this machine, but not those of pages
 * that a browser was led to.
 */
import { BlockList, isIP } from "node:net";
import { foldedName } from "../../relay/fields.ts";
import type { HttpRequest } from "../../types.ts";

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Whether the address is a loopback address. */
export function isLoopback(address: string): boolean {
  const family = isIP(address);
  // Fast path for IPv4: BlockList parses the address on each check, and IPv4 has only one notation.
  return family === 4 ? address.startsWith("127.") : family === 6 && loopback.check(address, "ipv6");
}

/**
 * Whether a proxy forwarded the request, by its header fields in any spelling. The address of a
 * proxy says nothing about the caller behind it. Takes Node's own message.
 */
export function isForwarded({ rawHeaders }: { readonly rawHeaders: readonly string[] }): boolean {
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const first = name.charCodeAt(0) | LOWER_CASE;
    if ((first === X || first === F || first === V) && forwarding.test(foldedName(name))) return true;
  }
  return false;
}

const forwarding = /^(?:forwarded$|via$|x-real-ip$|x-forwarded-)/;
/** The first letter rules out most names. This matters because each request is checked. */
const [F, V, X] = Array.from("fvx", (letter) => letter.charCodeAt(0));
/** The bit that makes an ASCII letter lower case. */
const LOWER_CASE = 0x20;

/** The host name in the request, without port, in lower case; undefined if there is none. */
function requestedHost(request: Pick<HttpRequest, "url" | "header">): string | undefined {
  const authority = request.url.host ?? request.header("host");
  const [, bracketed, name] = /^(?:\[([^\]]*)\]|([^:]*))/.exec(authority ?? "") ?? [];
  const host = (bracketed ?? name ?? "").toLowerCase().replace(/\.$/, "");
  return host === "" ? undefined : host;
}

/** Why a request needs a secret. */
export type StrangerReason = "other machine" | "proxy" | "foreign name";

export interface LocalCallers {
  /** Names of this machine in lower case, in addition to localhost and its addresses. */
  readonly hosts: ReadonlySet<string>;
  /** Addresses whose programs need no secret. Default: loopback addresses. */
  readonly includes?: (address: string) => boolean;
  /**
   * Addresses of connections whose requests need no secret, whatever their client is: of a proxy
   * that decides that itself. Default: none.
   */
  readonly relays?: (address: string) => boolean;
}

/**
 * Returns why a caller needs a secret; undefined when it needs none. Such a caller has one of the
 * addresses, uses no proxy, and names this machine by a name that no foreign name server can give
 * to it. Otherwise a page could be made to send requests by such a name (rebinding). A request that
 * names no host does not come from a browser.
 */
export function strangerReason(
  request: HttpRequest,
  { hosts, includes = isLoopback, relays }: LocalCallers,
): StrangerReason | undefined {
  const isRelay = relays?.(request.conn.ip()) === true;
  if (!isRelay) {
    if (!includes(request.ip)) return "other machine";
    if (isForwarded(request.raw)) return "proxy";
  }
  const host = requestedHost(request);
  const isOwn = host === undefined || host === "localhost" || isLoopback(host) || hosts.has(host);
  // A caller on another machine, or behind a relay, may name this machine by its address, which no
  // name server gives.
  return isOwn || (isIP(host) !== 0 && (isRelay || !isLoopback(request.ip))) ? undefined : "foreign name";
}
