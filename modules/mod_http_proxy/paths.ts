/** Converts paths between those that clients request and those that upstreams see. */
import { asciiTarget, encodePath } from "../../core/http/index.ts";
import type { HttpRequest } from "../../core/types.ts";
import type { UpstreamAddress } from "./settings.ts";

export interface TargetPath {
  /** The path of the app as the host has matched it: "" at the root. */
  readonly base: string;
  /** The target of the request with its query, without the path of the upstream's own URL. */
  readonly target: string;
  /** The prefix of the app that upstreams do not see. */
  readonly hidden: string;
}

/**
 * Matches dot segments, even with parameters (`..;a`), and NUL, which ends a string in servers
 * written in C.
 */
const ambiguous = /(?:^|[\\/])\.\.?(?:[;\\/]|$)|\0/;

/**
 * Whether an upstream may interpret the path as a different one, in any spelling. The host has
 * chosen the app, and with it the guard, by the path as it is. An upstream that resolves dot
 * segments would leave that app. Escapes are decoded byte by byte: the host leaves all escapes of a
 * segment undecoded if one of them is not UTF-8, but upstreams may decode them.
 */
function isAmbiguous(raw: string): boolean {
  const decoded = raw.replace(/%[0-9a-f]{2}/gi, (coded) => String.fromCharCode(Number.parseInt(coded.slice(1), 16)));
  return raw.includes("#") || ambiguous.test(decoded);
}

/** Matches a character that no request line can have. HTTP/2 lets more characters through. */
const unsendable = /[^\x21-\xff]/;

/**
 * Returns undefined for a path that cannot be sent, and for one that upstreams may interpret as a
 * different one.
 */
export function targetPath({ path, url }: HttpRequest, rest: string, option: string): TargetPath | undefined {
  if (isAmbiguous(url.raw_path)) return undefined;
  const base = path.slice(0, path.length - rest.length).replace(/\/$/, "");
  const query = url.query === undefined ? "" : `?${url.query}`;
  const pathOf = (path: string, hidden: string): TargetPath | undefined => {
    const target = asciiTarget(`${path}${query}`);
    return unsendable.test(target) ? undefined : { base, target, hidden };
  };
  if (option === "keep") return pathOf(url.raw_path, "");
  const prefix = option === "strip" ? "" : option.replace(/\/$/, "");
  const isPlain = url.raw_path === base || url.raw_path.startsWith(`${base}/`);
  // Forwards the rest as the client sent it, unless the client escaped the base path.
  const below = isPlain ? url.raw_path.slice(base.length).replace(/^\/*/, "/") : encodePath(`/${rest}`);
  return pathOf(`${prefix}${below}`, base);
}

/** Converts an upstream's redirect to itself into the path of the app for clients. */
export function clientLocation(
  location: string,
  { secure, authority, basePath }: UpstreamAddress,
  base: string,
  option: string,
): string {
  const scheme = location.startsWith("//") ? "" : secure ? "https:" : "http:";
  const origin = `${scheme}//${authority}`;
  if (location.slice(0, origin.length).toLowerCase() !== origin.toLowerCase()) return location;
  const path = location.slice(origin.length);
  if (path !== "" && !/^[/?#]/.test(path)) return location;
  const prefix = `${basePath}${option === "strip" || option === "keep" ? "" : option.replace(/\/$/, "")}`;
  if (prefix !== "" && path !== prefix && !path.startsWith(`${prefix}/`)) return location;
  const below = path.slice(prefix.length);
  const own = option === "keep" ? below : `${base}/${below.replace(/^\//, "")}`;
  // Browsers interpret two slashes as the beginning of another server's name.
  return own.replace(/^[\\/]*/, "/");
}
