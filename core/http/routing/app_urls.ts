/** Names and base paths of apps, and the origins under which clients reach them. */
import { bracketed } from "../../util/brackets.ts";

/**
 * Returns the app name of a module, whose name has already lost its leading `mod_`: it loses one
 * leading `http_` (contract, part 1).
 */
export function appName(module: string): string {
  return module.replace(/^http_/, "");
}

/**
 * Returns the configured path of an app, else `/<app>`, with a leading slash. `$host` stands for
 * the host's name.
 */
export function appPath(app: string, host: string, configured: unknown): string {
  const path = typeof configured === "string" ? configured : `/${app}`;
  const placed = path.replaceAll("$host", () => host);
  return placed.startsWith("/") ? placed : `/${placed}`;
}

/**
 * Returns why no request can have a path, as the end of a sentence; undefined for one that requests
 * can have.
 */
export function pathFault(path: string): string | undefined {
  if (/[?#]/.test(path)) return "a path has no ? and no #";
  if (/%[0-9a-f]{2}/i.test(path)) return "write it without escapes: paths are compared once they are decoded";
  if (path.includes("//")) return "several slashes in a row count as one";
  return /(?:^|\/)\.{1,2}(?:\/|$)/.test(path)
    ? "clients resolve the segments . and .. before they send a request"
    : undefined;
}

/** Returns the base path of an app: its path without a trailing slash, "" for the root. */
export function basePath(app: string, host: string, configured: unknown): string {
  const path = appPath(app, host, configured);
  return path.endsWith("/") ? path.slice(0, -1) : path;
}

const localhost: ReadonlySet<string> = new Set(["127.0.0.1", "::1", "0.0.0.0", "::", "*"]);

/**
 * Returns the name under which this machine reaches a listener on an address. Loopback and "every
 * address" are localhost.
 */
export function displayName(address: string): string {
  return localhost.has(address) ? "localhost" : bracketed(address);
}
