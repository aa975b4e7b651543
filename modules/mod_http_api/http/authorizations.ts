/** `API.Authorizations` of the node's config: secrets of callers, each with the paths that it opens, as Kubo has them. */
import { authorizationOf, findToken, type KnownToken, knownToken } from "../../../core/http/index.ts";

/** One entry as it stands in the config. */
export interface AuthorizationEntry {
  readonly AuthSecret: string;
  readonly AllowedPaths: readonly string[] | null;
}

/** Known by its Authorization header, of which only the digest is kept. */
export interface Authorization extends KnownToken {
  /** Prefixes of decoded paths, compared as plain text: `/api/v0/pin/ls` opens `/api/v0/pin/lsx`, too. */
  readonly prefixes: readonly string[];
}

/**
 * The entries whose secret a caller can present. Undefined when the config has no entries: then the API asks for none.
 * A list without elements lets nobody in. `warn` is told of each entry that no caller can match.
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
      `API.Authorizations.${name}.AuthSecret lets nobody in: ` +
        "it must be bearer:TOKEN, basic:USER:PASSWORD or basic:BASE64-OF-BOTH",
    );
    return [];
  });
}

/** The entry whose header was sent, letter case and all. Compares in constant time. */
export const authorizedBy = (header: string | undefined, known: readonly Authorization[]): Authorization | undefined =>
  header === undefined ? undefined : findToken([header], known);

/** What any known secret opens, whatever its paths: the version, and what tells a command line which commands there are. */
const openToAll: ReadonlySet<string> = new Set(["/api/v0/version", "/api/openapi.json"]);

/** Whether an entry opens a decoded path. */
export function opens({ prefixes }: Authorization, path: string): boolean {
  return openToAll.has(path) || prefixes.some((prefix) => path.startsWith(prefix));
}
