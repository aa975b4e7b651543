/**
 * Lifetime and TTL of a published record: how long it is valid, and how long others may cache it.
 */
import { failure } from "../util/errors.ts";
import { formatDuration, parseDuration } from "../util/go/duration.ts";

/** The rules of go-ipfs 0.9 or of Kubo 0.43. */
export type NameRules = "0.9" | "0.43";

type Times = { readonly lifetime?: number | string | undefined; readonly ttl?: number | string | undefined };
type Milliseconds = { readonly lifetime: number | undefined; readonly ttl: number | undefined };

const timesOfGoIpfs = (lifetime: Times["lifetime"], ttl: Times["ttl"]): Milliseconds => ({
  lifetime: lifetime === undefined ? undefined : lifetimeOf(lifetime),
  ttl: ttl === undefined ? undefined : Math.max(0, milliseconds(ttl)),
});

/** Defaults of Kubo 0.43 in milliseconds. */
const LIFETIME_KUBO_0_43_MS = 48 * 3600 * 1000;
const TTL_KUBO_0_43_MS = 5 * 60 * 1000;

/** Applies the rules of Kubo 0.43. @throws NodeError for invalid combinations of times */
function timesOfKubo(lifetime: Times["lifetime"], ttl: Times["ttl"]): Milliseconds {
  const life = lifetime === undefined ? LIFETIME_KUBO_0_43_MS : lifetimeOf(lifetime);
  if (life <= 0) throw failure("OPTION_INVALID", { reason: `lifetime must be greater than zero, got ${lifetime}` });
  if (ttl === undefined) return { lifetime: life, ttl: Math.min(TTL_KUBO_0_43_MS, life) };
  const cached = milliseconds(ttl);
  if (cached < 0) throw failure("OPTION_INVALID", { reason: `ttl must not be negative, got ${ttl}` });
  if (cached > life) {
    const one = formatDuration(cached);
    const other = formatDuration(life);
    throw failure("OPTION_CONFLICT", { reason: `ttl (${one}) must not be greater than lifetime (${other})` });
  }
  return { lifetime: life, ttl: cached };
}

const milliseconds = (time: number | string): number => (typeof time === "number" ? time : parseDuration(time));

function lifetimeOf(time: number | string): number {
  try {
    return milliseconds(time);
  } catch (error) {
    throw failure("DURATION_INVALID", { reason: `error parsing lifetime option: ${(error as Error).message}` }, error);
  }
}

/**
 * Returns the function that converts the requested times to milliseconds by the given rules. That
 * function throws a NodeError for text that is not a duration.
 */
export const timesOf = (rules: NameRules) => (rules === "0.43" ? timesOfKubo : timesOfGoIpfs);
