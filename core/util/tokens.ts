/** Tokens of an option, and what the Authorization header of a request presents. */
import { createHash, timingSafeEqual } from "node:crypto";
import { ModhostError } from "./errors.ts";

/** A token that is known by its SHA-256 alone. */
export interface KnownToken {
  readonly digest: Buffer;
}

/** How an option of tokens is written: a list of them, or an object from token to settings. */
export interface TokenOption<Settings extends object> {
  readonly name: string;
  /** Settings as they may be written, for the error: `{ user: "anna" }`. */
  readonly example: string;
  /** What the fields of a token mean, of which a list has none; undefined when they are wrong. */
  read(fields: Readonly<Record<string, unknown>>): Settings | undefined;
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text, "utf8").digest();
}

/** A token of which only the digest is kept. */
export const knownToken = (text: string): KnownToken => ({ digest: digestOf(text) });

/**
 * The tokens of an option.
 * @throws {ModhostError} OPTION_INVALID, which says what is allowed and nothing of what was written there
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

/** The token that one of the texts is. Takes as long for a text that is none: all are compared, each in constant time. */
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

/** The scheme of an Authorization header, in lower case, and what follows it; undefined where there is none. */
export function readAuthorization(header: string | undefined): { scheme: string; credentials: string } | undefined {
  const text = (header ?? "").trimStart();
  const [, scheme] = /^(\S+)\s/.exec(text) ?? [];
  if (scheme === undefined) return undefined;
  return { scheme: scheme.toLowerCase(), credentials: text.slice(scheme.length).trim() };
}

/**
 * The Authorization header of a secret in the forms that Kubo has for it: `bearer:TOKEN`, `basic:USER:PASSWORD`,
 * `basic:BASE64-OF-BOTH`, or a token that has no colon. Undefined for any other text.
 */
export function authorizationOf(secret: string): string | undefined {
  if (secret === "") return undefined;
  if (!secret.includes(":")) return `Bearer ${secret}`;
  const [, scheme, rest = ""] = /^(bearer|basic):(.*)$/s.exec(secret) ?? [];
  if (scheme === undefined) return undefined;
  if (scheme === "bearer") return `Bearer ${rest}`;
  return `Basic ${rest.includes(":") ? Buffer.from(rest).toString("base64") : rest}`;
}
