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
    if (/^(?:forwarded$|via$|x[_-]real[_-]ip$|x[_-]forwarded[_-])/.test(name)) return true;
  }
  return false;
}

/** The host name in the request, without port, in lower case; undefined if there is none. */
export function requestedHost({ url, headers }: Pick<HttpRequest, "url" | "headers">): string | undefined {
  const authority = url.host ?? headers.host;
  const [, bracketed, name] = /^(?:\[([^\]]*)\]|([^:]*))/.exec(authority ?? "") ?? [];
  const host = (bracketed ?? name ?? "").toLowerCase().replace(/\.$/, "");
  return host === "" ? undefined : host;
}

/** Is it a name that no other machine's name server can give to this one? Else a page could be made to ask by rebinding. */
export function isLocalName(host: string): boolean {
  return host === "localhost" || isLoopback(host);
}
