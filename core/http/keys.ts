import type { HttpMethod } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { METHODS } from "../util/node_http.ts";
import { websocketMethod } from "./upgrade.ts";

/** A route key taken apart: `METHOD`, `METHOD /path` or `METHOD /path/*` (contract, part 2). */
export interface ParsedKey {
  /** In upper case; `WS` for websockets. */
  readonly method: string;
  /** Relative to the app's base: "" or a path beginning with a slash, without the final `/*`. */
  readonly path: string;
  readonly wildcard: boolean;
}

/** The methods that requests come with. CONNECT is for proxies: Node's servers hand it to no request handler. */
export const httpMethods = METHODS.filter((method) => method !== "CONNECT") as readonly HttpMethod[];

const known: ReadonlySet<string> = new Set([...httpMethods, websocketMethod]);

/**
 * Takes the keys of an app apart, in their order.
 * @throws {ModhostError} ROUTE_INVALID naming the app, each wrong key and what is wrong with it
 */
export function parseRouteKeys(keys: readonly string[], app: string): ParsedKey[] {
  const faults: string[] = [];
  const parsed = keys.map((key) => {
    const result = parseRouteKey(key);
    if (typeof result === "string") faults.push(`the route key ${JSON.stringify(key)} ${result}`);
    return result;
  });
  if (faults.length > 0) throw new ModhostError("ROUTE_INVALID", { app, faults: faults.join("; ") });
  return parsed as ParsedKey[];
}

/** What is wrong with a key is given as a text. */
function parseRouteKey(key: string): ParsedKey | string {
  const [, word = "", path = ""] = /^\s*(\S*)\s*(.*)$/s.exec(key) ?? [];
  if (word === "" || word.startsWith("/")) return 'lacks a method: write "GET /path"';
  const method = word.toUpperCase();
  if (method === "CONNECT") return "names the method CONNECT, which is for proxies and comes to no route: remove it";
  if (!known.has(method)) return `names the method ${word}, which HTTP servers here do not know`;
  if (path !== "" && !path.startsWith("/"))
    return `has a path that does not begin with a slash: write "${method} /${path}"`;
  return path.endsWith("/*") ? { method, path: path.slice(0, -2), wildcard: true } : { method, path, wildcard: false };
}

/** What to write instead of a key whose author hopes for parameters or patterns; undefined for all others. */
export function patternHint(key: string): string | undefined {
  if (!/[:*]/.test(key)) return undefined;
  const parsed = parseRouteKey(key);
  if (typeof parsed === "string") return undefined;
  const segments = parsed.path.split("/");
  const at = segments.findIndex((segment) => segment.startsWith(":") || segment.includes("*"));
  if (at < 0) return undefined;
  const kept = segments.slice(0, at).join("/");
  const stem = /^[^:*]+(?=\*$)/.exec(segments[at] as string)?.[0];
  const instead = `${parsed.method} ${kept}${stem === undefined ? "" : `/${stem}`}/*`;
  return `the route key ${JSON.stringify(key)} is taken literally, as there are no parameters: write ${JSON.stringify(instead)}`;
}
