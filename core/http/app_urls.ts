/** Where apps are: their names and base paths, and the origins under which clients reach them. */
import { isIPv6 } from "node:net";

const defaultPorts: Readonly<Record<string, number>> = { http: 80, https: 443 };

/** The app name of a module, whose name has lost its leading `mod_` already: less one leading `http_` (contract, part 1). */
export function appName(module: string): string {
  return module.replace(/^http_/, "");
}

/** The path of an app as it is configured, else `/<app>`, with a slash in front. `$host` stands for the host's name. */
export function appPath(app: string, host: string, configured: unknown): string {
  const path = typeof configured === "string" ? configured : `/${app}`;
  const placed = path.replaceAll("$host", () => host);
  return placed.startsWith("/") ? placed : `/${placed}`;
}

/** Base path of an app: its path without a trailing slash, "" for the root. */
export function basePath(app: string, host: string, configured: unknown): string {
  const path = appPath(app, host, configured);
  return path.endsWith("/") ? path.slice(0, -1) : path;
}

/** `https://example.org:5281`; the scheme's own port is left out. */
export function originOf(scheme: string, name: string, port: number): string {
  return `${scheme}://${name}${port === defaultPorts[scheme] ? "" : `:${port}`}`;
}

/** True for a scheme that URLs of apps can have. */
export function isWebScheme(scheme: string | undefined): scheme is string {
  return scheme !== undefined && Object.hasOwn(defaultPorts, scheme);
}

/** An address in a URL: IPv6 in brackets. */
export function bracketed(address: string): string {
  return isIPv6(address) ? `[${address}]` : address;
}

const localhost: ReadonlySet<string> = new Set(["127.0.0.1", "::1", "0.0.0.0", "::", "*"]);

/** The name under which this machine reaches what listens on an address: loopback and "every address" are localhost. */
export function displayName(address: string): string {
  return localhost.has(address) ? "localhost" : bracketed(address);
}
