/**
 * `API.Authorizations` of the node's config: secrets of callers, each with the paths that it opens,
 * as in Kubo.
 */
import { findToken, type KnownToken, knownToken } from "../../../core/http/index.ts";
import { authorizationOf } from "../authorization_header.ts";

/** One entry as written in the config. */
export interface AuthorizationEntry {
  readonly AuthSecret: string;
  readonly AllowedPaths: readonly string[] | null;
}

/** Identified by its Authorization header, of which only the digest is stored. */
export interface Authorization extends KnownToken {
  /**
   * Prefixes of decoded paths, compared as plain text: `/api/v0/pin/ls` also opens
   * `/api/v0/pin/lsx`.
   */
  readonly prefixes: readonly string[];
}

/**
 * Returns the entries whose secret a caller can present. Undefined if the config has no entries:
 * then the API requires no authorization. An empty list refuses everyone. Calls `warn` for each
 * entry that no caller can match.
 */
export function authorizationsFrom(
  entries: Readonly<Record<string, AuthorizationEntry | null>> | null,
  warn: (sentence: string) => void,
): readonly Authorization[] | undefined {
  const named = Object.entries(entries ?? {});
  if (named.length === 0) return undefined;
  return named.flatMap(([name, entry]) => {
    const header = authorizationOf(entry?.AuthSecret ?? "");
    if (header !== undefined) return [{ ...knownToken(header), prefixes: entry?.AllowedPaths ?? [] }];
    warn(
      `API.Authorizations.${name}.AuthSecret matches no caller: ` +
        "it must be bearer:TOKEN, basic:USER:PASSWORD or basic:BASE64-OF-BOTH",
    );
    return [];
  });
}

/** Returns the entry whose header was sent; letter case matters. Compares in constant time. */
export const authorizedBy = (header: string | undefined, known: readonly Authorization[]): Authorization | undefined =>
  header === undefined ? undefined : findToken([header], known);

/**
 * Paths that any known secret opens, whatever its own paths: the version, and the document from
 * which command lines learn the commands.
 */
const openToAll: ReadonlySet<string> = new Set(["/api/v0/version", "/api/openapi.json"]);

/** Returns whether an entry opens a decoded path. */
export function opensPath({ prefixes }: Authorization, path: string): boolean {
  return openToAll.has(path) || prefixes.some((prefix) => path.startsWith(prefix));
}
