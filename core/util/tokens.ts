/** Parses tokens of options, and the Authorization header of requests. */
import { createHash, timingSafeEqual } from "node:crypto";
import { ModhostError } from "./errors.ts";

/** A token of which only the SHA-256 digest is stored. */
export interface KnownToken {
  readonly digest: Buffer;
}

/** The format of an option with tokens: a list of them, or an object from token to settings. */
export interface TokenOption<Settings extends object> {
  readonly name: string;
  /** Example settings for the error message: `{ user: "anna" }`. */
  readonly example: string;
  /** Parses the settings of a token (empty for a list); returns undefined if they are wrong. */
  read(fields: Readonly<Record<string, unknown>>): Settings | undefined;
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text, "utf8").digest();
}

/** Returns a token of which only the digest is stored. */
export const knownToken = (text: string): KnownToken => ({ digest: digestOf(text) });

/**
 * Parses the tokens of an option.
 * @throws {ModhostError} OPTION_INVALID; its message has the allowed form and nothing of the value
 */
export function readTokens<Settings extends object>(
  value: unknown,
  { name, example, read }: TokenOption<Settings>,
): (KnownToken & Settings)[] {
  const allowed = `it must be a list of tokens, or an object from token to ${example}`;
  const invalid = () => new ModhostError("OPTION_INVALID", { name, value: "***", allowed });
  if (value === undefined || value === null) return [];
  if (typeof value !== "object") throw invalid();
  const entries: [unknown, unknown][] = Array.isArray(value)
    ? value.map((token) => [token, undefined])
    : Object.entries(value);
  return entries.map(([token, fields]) => {
    if (typeof token !== "string" || token === "") throw invalid();
    if (typeof (fields ?? {}) !== "object") throw invalid();
    const settings = read((fields ?? {}) as Record<string, unknown>);
    if (settings === undefined) throw invalid();
    return { ...knownToken(token), ...settings };
  });
}

/**
 * Returns the token that equals one of the texts. It takes the same time without a match: all are
 * compared, each in constant time.
 */
export function findToken<Token extends KnownToken>(
  texts: readonly string[],
  tokens: readonly Token[],
): Token | undefined {
  const candidates = texts.map(digestOf);
  let found: Token | undefined;
  for (const token of tokens) {
    for (const candidate of candidates) if (timingSafeEqual(candidate, token.digest)) found = token;
  }
  return found;
}

/**
 * Returns the scheme of an Authorization header, in lower case, and its credentials; undefined if
 * there are none.
 */
export function readAuthorization(header: string | undefined): { scheme: string; credentials: string } | undefined {
  const text = (header ?? "").trimStart();
  const [, scheme] = /^(\S+)\s/.exec(text) ?? [];
  if (scheme === undefined) return undefined;
  return { scheme: scheme.toLowerCase(), credentials: text.slice(scheme.length).trim() };
}
