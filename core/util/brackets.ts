/** Addresses of IPv6 have brackets in URLs and before a port, and nowhere else. */
import { isIPv6 } from "node:net";

/** Returns a host for a URL, with brackets around IPv6. */
export function bracketed(host: string): string {
  return isIPv6(host) ? `[${host}]` : host;
}

/** Returns a host without the brackets of a URL. */
export function unbracketed(host: string): string {
  return host.replace(/^\[(.*)\]$/, "$1");
}

/** Returns `example.org:443` or `[::1]:443`. */
export function hostPort(host: string, port: number | string): string {
  return `${bracketed(host)}:${port}`;
}
