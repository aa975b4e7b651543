/** Tokens that authorize callers from anywhere. */
import { findToken, type KnownToken, readAuthorization, readTokens } from "../../../core/http/index.ts";

export interface Token extends KnownToken {
  /** Allowed path prefixes, matched by whole components; undefined allows everything. */
  readonly paths: readonly string[] | undefined;
}

/** Reads the option `api_tokens`. @throws ModhostError OPTION_INVALID */
export function tokensFrom(option: unknown): Token[] {
  return readTokens(option, { name: "api_tokens", example: '{ paths: ["/api/v0/add", ...] }', read: pathsOf });
}

function pathsOf({ paths, ...others }: Readonly<Record<string, unknown>>): Pick<Token, "paths"> | undefined {
  if (Object.keys(others).length > 0) return undefined;
  if (paths === undefined) return { paths };
  const isList = Array.isArray(paths) && paths.every((path) => typeof path === "string" && path.startsWith("/"));
  return isList ? { paths } : undefined;
}

/**
 * Returns the token that the Authorization header presents, as a bearer token or in basic
 * credentials: as the password or as `user:password`. Undefined without such a header; "wrong" if
 * no token matches. Compares in constant time.
 */
export function presentedToken(header: string | undefined, tokens: readonly Token[]): Token | "wrong" | undefined {
  const { scheme, credentials = "" } = readAuthorization(header) ?? {};
  if (scheme === "bearer") return findToken([credentials], tokens) ?? "wrong";
  if (scheme !== "basic") return undefined;
  const decoded = Buffer.from(credentials, "base64").toString("utf8");
  return findToken([decoded, decoded.slice(decoded.indexOf(":") + 1)], tokens) ?? "wrong";
}

/** Returns whether a token may be used for a path. */
export function permitsPath({ paths }: Token, path: string): boolean {
  return paths === undefined || paths.some((prefix) => path === prefix || path.startsWith(prefix.replace(/\/?$/, "/")));
}
