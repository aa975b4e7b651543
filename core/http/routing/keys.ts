import type { HttpMethod } from "../../types.ts";
import { ModhostError } from "../../util/errors.ts";
import { METHODS } from "../../util/node_http.ts";
import { websocketMethod } from "../connection/upgrade.ts";

/** A parsed route key: `METHOD`, `METHOD /path` or `METHOD /path/*` (contract, part 2). */
export interface ParsedKey {
  /** In upper case; `WS` for websockets. */
  readonly method: string;
  /** Relative to the app's base: "" or a path beginning with a slash, without the final `/*`. */
  readonly path: string;
  readonly wildcard: boolean;
}

/** Methods of requests. CONNECT is for proxies: Node's servers pass it to no request handler. */
export const httpMethods = METHODS.filter((method) => method !== "CONNECT") as readonly HttpMethod[];

const known: ReadonlySet<string> = new Set([...httpMethods, websocketMethod]);

/**
 * Parses the route keys of an app, in their order.
 * @throws {ModhostError} ROUTE_INVALID naming the app, each wrong key and its fault
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

/** Parses one key. Returns the fault of an invalid key as a text. */
function parseRouteKey(key: string): ParsedKey | string {
  const [, word = "", path = ""] = /^\s*(\S*)\s*(.*)$/s.exec(key) ?? [];
  if (word === "" || word.startsWith("/")) return 'lacks a method: write "GET /path"';
  const method = word.toUpperCase();
  if (method === "CONNECT")
    return "names the method CONNECT, which is for proxies and never reaches a route: remove it";
  if (!known.has(method)) return `names the method ${word}, which HTTP servers here do not know`;
  if (path !== "" && !path.startsWith("/"))
    return `has a path that does not begin with a slash: write "${method} /${path}"`;
  return path.endsWith("/*") ? { method, path: path.slice(0, -2), wildcard: true } : { method, path, wildcard: false };
}

/**
 * Returns what to write instead of a key with parameters or patterns, which the host does not have;
 * undefined for all other keys.
 */
export function patternHint(key: string): string | undefined {
  if (!/[:*]/.test(key)) return undefined;
  const parsed = parseRouteKey(key);
  if (typeof parsed === "string") return undefined;
  const segments = parsed.path.split("/");
  const at = segments.findIndex((segment) => segment.startsWith(":") || segment.includes("*"));
  if (at < 0) return undefined;
  const literal = segments.slice(0, at).join("/");
  const stem = /^[^:*]+(?=\*$)/.exec(segments[at] as string)?.[0];
  const instead = `${parsed.method} ${literal}${stem === undefined ? "" : `/${stem}`}/*`;
  return `the route key ${JSON.stringify(key)} is taken literally, as there are no parameters: write ${JSON.stringify(instead)}`;
}
