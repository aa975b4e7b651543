/** Paths as clients ask for them, and as upstreams do. */
import { encodePath } from "../../core/http/index.ts";
import type { HttpRequest } from "../../core/types.ts";
import type { Place } from "./settings.ts";

export interface AskedPath {
  /** Of the app, as the host has found it: "" at the root. */
  readonly base: string;
  /** What upstreams are asked for, before the path of their own URL; with the query. */
  readonly target: string;
  /** The prefix of the app that upstreams do not see. */
  readonly hidden: string;
}

/**
 * Undefined for a path with a segment `..`, in whatever spelling: the host has chosen the app by the path as it is, and an
 * upstream that resolves it would leave what it is asked for.
 */
export function askedPath({ path, url }: HttpRequest, rest: string, option: string): AskedPath | undefined {
  if (path.includes("..") && path.split(/[\\/]/).includes("..")) return undefined;
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
  { secure, authority, basePath }: Place,
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
  if (option === "keep") return below === "" ? "/" : below;
  return `${base}${below.startsWith("/") ? "" : "/"}${below}`;
}
