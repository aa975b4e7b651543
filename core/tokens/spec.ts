/** Checks the properties of a token: its name, scopes, expiry, rate and quotas. */
import type { NewToken } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { type Rate, readRate } from "../util/rate_limit.ts";
import { withoutSecrets } from "../util/secret_text.ts";
import { kindOfScope } from "./scopes.ts";

/** A token as stored in `tokens.json`. */
export interface StoredToken extends NewToken {
  readonly id: string;
  /** SHA-256 of the secret, hexadecimal. */
  readonly sha256: string;
  readonly created: string;
  readonly by: string;
}

/** The parsed properties of a token. */
export interface TokenTerms {
  /** Milliseconds since 1970; Infinity if it never expires. */
  readonly expires: number;
  readonly rate: Rate | undefined;
  readonly received: Quota | undefined;
  readonly sent: Quota | undefined;
}

export interface Quota {
  readonly bytes: number;
  /** Whether the count starts again each day (UTC). */
  readonly daily: boolean;
}

const namePattern = /^(?!mht_)[A-Za-z0-9][\w.@-]{0,63}$/;
const MAX_SCOPES = 100;
const MAX_SCOPE_LENGTH = 1024;

const seconds = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 } as const;

/**
 * Returns a token in the form in which it is stored, with its expiry as a time.
 * @throws {ModhostError} TOKEN_INVALID naming the field and the allowed values
 */
export function normalized(wanted: NewToken, now: number): NewToken {
  const expires = wanted.expires === undefined ? undefined : new Date(endOf(wanted.expires, now)).toISOString();
  const token = { ...wanted, expires };
  const { expires: end } = termsOf(token);
  if (end <= now) throw invalid("expires", wanted.expires, "a time in the future");
  return token;
}

/** @throws {ModhostError} TOKEN_INVALID */
export function termsOf(token: NewToken): TokenTerms {
  const { name, scopes, expires, rate, burst, bytes_in, bytes_out } = token;
  if (typeof name !== "string" || !namePattern.test(name))
    throw invalid("name", name, "letters, digits and . _ @ -, at most 64, a letter or digit first");
  if (!Array.isArray(scopes) || scopes.length === 0 || scopes.length > MAX_SCOPES)
    throw invalid("scopes", scopes, `a list of 1 to ${MAX_SCOPES} scopes, such as app:NAME`);
  for (const scope of scopes) assertScope(scope);
  if (burst !== undefined && rate === undefined) throw invalid("burst", burst, "given together with a rate");
  return {
    expires: expires === undefined ? Number.POSITIVE_INFINITY : timeOf(expires),
    rate: rate === undefined ? undefined : rateOf(rate, burst),
    received: bytes_in === undefined ? undefined : quotaOf("bytes_in", bytes_in),
    sent: bytes_out === undefined ? undefined : quotaOf("bytes_out", bytes_out),
  };
}

/** Checks only the form of a scope: a token may outlive the module that declares the kind. */
function assertScope(text: unknown): void {
  const isScope = typeof text === "string" && text.length <= MAX_SCOPE_LENGTH && kindOfScope(text) !== undefined;
  if (!isScope)
    throw invalid("scopes", text, `a kind, or a kind and more after a colon, of at most ${MAX_SCOPE_LENGTH} letters`);
}

function timeOf(text: string): number {
  const time = typeof text === "string" && /^\d{4}-\d\d-\d\d(T|$)/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) throw invalid("expires", text, 'a time such as "30d", "12h" or "2030-01-31T12:00:00Z"');
  return time;
}

/** Parses a future time, or a period from now on. */
function endOf(text: string, now: number): number {
  const [, amount, unit] = /^(\d{1,6})(s|m|h|d|w)$/.exec(text) ?? [];
  if (amount === undefined) return timeOf(text);
  return now + Number(amount) * seconds[unit as keyof typeof seconds] * 1000;
}

function rateOf(text: string, burst: number | undefined): Rate {
  const perSecond = readRate(text);
  if (perSecond === undefined) throw invalid("rate", text, 'requests in a time, such as "10/s", "600/m" or "5000/h"');
  if (burst !== undefined && !(Number.isSafeInteger(burst) && burst >= 1))
    throw invalid("burst", burst, "a whole number of requests, at least 1");
  return { perSecond, burst: burst ?? Math.max(1, Math.ceil(perSecond)) };
}

function quotaOf(field: string, text: string): Quota {
  const [, amount, prefix = "", binary, day] = /^(\d{1,12}) ?(?:([kmgt])(i)?)?b?(\/day)?$/i.exec(text) ?? [];
  const base = binary === undefined ? 1000 : 1024;
  const bytes = Number(amount) * base ** " kmgt".indexOf(prefix === "" ? " " : prefix.toLowerCase());
  if (amount === undefined || !Number.isSafeInteger(bytes))
    throw invalid(field, text, 'a size such as "10GB", or "500MiB/day"');
  return { bytes, daily: day !== undefined };
}

function invalid(field: string, value: unknown, allowed: string): ModhostError {
  const shown = withoutSecrets(JSON.stringify(value) ?? "not set").slice(0, 100);
  return new ModhostError("TOKEN_INVALID", { field, value: shown, allowed });
}
