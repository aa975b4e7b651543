/** Paths as clients ask for them, and as upstreams do. */
import { encodePath } from "../../core/http/index.ts";
import type { HttpRequest } from "../../core/types.ts";
import type { UpstreamAddress } from "./settings.ts";

export interface AskedPath {
  /** Of the app, as the host has found it: "" at the root. */
  readonly base: string;
  /** What upstreams are asked for, before the path of their own URL; with the query. */
  readonly target: string;
  /** The prefix of the app that upstreams do not see. */
  readonly hidden: string;
}

/** Dot segments, be it with parameters (`..;a`), and the end of a text for servers that are written in C. */
const ambiguous = /(?:^|[\\/])\.\.?(?:[;\\/]|$)|\0/;

/**
 * True for a path that an upstream may take for another one, in whatever spelling. The host has chosen the app, and with it
 * the guard, by the path as it is: an upstream that resolves it would leave what it is asked for. Byte for byte: where one
 * escape of several is no UTF-8, the host leaves all of them as they are, and upstreams may not.
 */
function isAmbiguous(raw: string): boolean {
  const decoded = raw.replace(/%[0-9a-f]{2}/gi, (coded) => String.fromCharCode(Number.parseInt(coded.slice(1), 16)));
  return raw.includes("#") || ambiguous.test(decoded);
}

/** Undefined for a path that upstreams may take for another one. */
export function askedPath({ path, url }: HttpRequest, rest: string, option: string): AskedPath | undefined {
  if (isAmbiguous(url.raw_path)) return undefined;
  const base = path.slice(0, path.length - rest.length).replace(/\/$/, "");
  const query = url.query === undefined ? "" : `?${url.query}`;
  if (option === "keep") return { base, target: `${url.raw_path}${query}`, hidden: "" };
  const prefix = option === "strip" ? "" : option.replace(/\/$/, "");
  const isPlain = url.raw_path === base || url.raw_path.startsWith(`${base}/`);
  // As it was sent, but where the base was not sent as it is written.
  const below = isPlain ? url.raw_path.slice(base.length).replace(/^\/*/, "/") : encodePath(`/${rest}`);
  return { base, target: `${prefix}${below}${query}`, hidden: base };
}

/** Where an upstream sends clients to itself, they come here: by the path of the app. */
export function clientLocation(
  location: string,
  { secure, authority, basePath }: UpstreamAddress,
  base: string,
  option: string,
): string {
  const origin = `${secure ? "https" : "http"}://${authority}`;
  if (!location.startsWith(origin)) return location;
  const path = location.slice(origin.length);
  if (path !== "" && !/^[/?#]/.test(path)) return location;
  const prefix = `${basePath}${option === "strip" || option === "keep" ? "" : option.replace(/\/$/, "")}`;
  if (prefix !== "" && path !== prefix && !path.startsWith(`${prefix}/`)) return location;
  const below = path.slice(prefix.length);
  const own = option === "keep" ? below : `${base}/${below.replace(/^\//, "")}`;
  // Browsers take two slashes for the beginning of the name of another server.
  return own.replace(/^[\\/]*/, "/");
}
