/** For how long a published record is valid, and for how long others may cache it. */
import { NodeError } from "../util/errors.ts";
import { formatDuration, parseDuration } from "../util/go/duration.ts";

/** Those of go-ipfs 0.9, or of Kubo 0.43. */
export type NameRules = "0.9" | "0.43";

type Times = { readonly lifetime?: number | string | undefined; readonly ttl?: number | string | undefined };
type Milliseconds = { readonly lifetime: number | undefined; readonly ttl: number | undefined };

const timesThen = (lifetime: Times["lifetime"], ttl: Times["ttl"]): Milliseconds => ({
  lifetime: lifetime === undefined ? undefined : lifetimeOf(lifetime),
  ttl: ttl === undefined ? undefined : Math.max(0, milliseconds(ttl)),
});

/** Milliseconds. */
const LIFETIME_TODAY_MS = 48 * 3600 * 1000;
const TTL_TODAY_MS = 5 * 60 * 1000;

/** As Kubo 0.43 has them. @throws NodeError for times that make no sense */
function timesToday(lifetime: Times["lifetime"], ttl: Times["ttl"]): Milliseconds {
  const life = lifetime === undefined ? LIFETIME_TODAY_MS : lifetimeOf(lifetime);
  if (life <= 0) throw new NodeError(`lifetime must be greater than zero, got ${lifetime}`);
  if (ttl === undefined) return { lifetime: life, ttl: Math.min(TTL_TODAY_MS, life) };
  const cached = milliseconds(ttl);
  if (cached < 0) throw new NodeError(`ttl must not be negative, got ${ttl}`);
  if (cached > life) {
    const [one, other] = [formatDuration(cached), formatDuration(life)];
    throw new NodeError(`ttl (${one}) must not be greater than lifetime (${other})`);
  }
  return { lifetime: life, ttl: cached };
}

const milliseconds = (time: number | string): number => (typeof time === "number" ? time : parseDuration(time));

function lifetimeOf(time: number | string): number {
  try {
    return milliseconds(time);
  } catch (error) {
    throw new NodeError(`error parsing lifetime option: ${(error as Error).message}`, { cause: error });
  }
}

/** Milliseconds of what was asked for, by the rules of a level. @throws NodeError for text that is no time */
export const timesOf = (rules: NameRules) => (rules === "0.43" ? timesToday : timesThen);
