/** Tokens that let callers in from anywhere. */
import { createHash, timingSafeEqual } from "node:crypto";
import { ModhostError } from "../../../core/index.ts";

export interface Token {
  readonly digest: Buffer;
  /** Prefixes of paths, by components; undefined: everything. */
  readonly paths: readonly string[] | undefined;
}

const digestOf = (text: string) => createHash("sha256").update(text, "utf8").digest();

/** Reads the option `api_tokens`. @throws ModhostError OPTION_INVALID */
export function tokensFrom(option: unknown): Token[] {
  if (option === undefined || option === null) return [];
  if (Array.isArray(option)) return option.map((token) => ({ digest: digestOf(texted(token)), paths: undefined }));
  if (typeof option !== "object") throw invalid();
  return Object.entries(option).map(([token, settings]) => ({
    digest: digestOf(texted(token)),
    paths: pathsOf(settings),
  }));
}

function pathsOf(settings: unknown): readonly string[] | undefined {
  if (settings === undefined || settings === null) return undefined;
  if (typeof settings !== "object" || Object.keys(settings).some((key) => key !== "paths")) throw invalid();
  const { paths } = settings as { paths?: unknown };
  if (paths === undefined) return undefined;
  if (!Array.isArray(paths) || !paths.every((path) => typeof path === "string" && path.startsWith("/")))
    throw invalid();
  return paths as string[];
}

function texted(token: unknown): string {
  if (typeof token !== "string" || token === "") throw invalid();
  return token;
}

/** Says what is allowed, and nothing of what was written there. */
const invalid = () =>
  new ModhostError("OPTION_INVALID", {
    name: "api_tokens",
    value: "***",
    allowed: 'it must be a list of tokens, or an object from token to { paths: ["/api/v0/add", ...] }',
  });

/**
 * What the Authorization header presents: a bearer token, or basic credentials whose password (or `user:password`
 * as a whole) is one. Undefined without such a header; "wrong" when no token fits, compared in constant time.
 */
export function presented(header: string | undefined, tokens: readonly Token[]): Token | "wrong" | undefined {
  const [, scheme = "", given = ""] = /^\s*(\S+)\s+(.*?)\s*$/s.exec(header ?? "") ?? [];
  const candidates = candidatesOf(scheme.toLowerCase(), given).map(digestOf);
  if (candidates.length === 0) return undefined;
  let found: Token | undefined;
  for (const token of tokens) {
    for (const candidate of candidates) if (timingSafeEqual(candidate, token.digest)) found = token;
  }
  return found ?? "wrong";
}

function candidatesOf(scheme: string, given: string): string[] {
  if (scheme === "bearer") return [given];
  if (scheme !== "basic") return [];
  const credentials = Buffer.from(given, "base64").toString("utf8");
  return [credentials, credentials.slice(credentials.indexOf(":") + 1)];
}

/** May a token be used for a path? */
export function permits({ paths }: Token, path: string): boolean {
  return paths === undefined || paths.some((prefix) => path === prefix || path.startsWith(prefix.replace(/\/?$/, "/")));
}
