import { METHODS } from "node:http";
import { ModhostError } from "../errors.ts";
import { websocketMethod } from "./upgrade.ts";

/** A route key taken apart: `METHOD`, `METHOD /path` or `METHOD /path/*` (spec 2). */
export interface ParsedKey {
  /** In upper case; `WS` for websockets. */
  readonly method: string;
  /** Relative to the app's base: "" or a path beginning with a slash, without the final `/*`. */
  readonly path: string;
  readonly wildcard: boolean;
}

const known = new Set([...METHODS, websocketMethod]);

/** Throws ROUTE_INVALID naming app, key and what is wrong with it. */
export function parseRouteKey(key: string, app: string): ParsedKey {
  const fault = (reason: string) => new ModhostError("ROUTE_INVALID", { app, key: JSON.stringify(key), reason });
  const [, word = "", path = ""] = /^\s*(\S*)\s*(.*)$/s.exec(key) ?? [];
  if (word === "" || word.startsWith("/")) throw fault('lacks a method: write "GET /path"');
  const method = word.toUpperCase();
  if (!known.has(method)) throw fault(`names the method ${word}, which HTTP servers here do not know`);
  if (path !== "" && !path.startsWith("/"))
    throw fault(`has a path that does not begin with a slash: write "${method} /${path}"`);
  return path.endsWith("/*") ? { method, path: path.slice(0, -2), wildcard: true } : { method, path, wildcard: false };
}
