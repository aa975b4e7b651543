/** Schedules renewals of certificates, and retries after failures. */
import { AcmeProblem } from "./transport.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** A certificate is renewed after this share of its lifetime. */
const RENEWAL_SHARE = 2 / 3;

/** The first pause after a failure; each later one is twice as long. */
const FIRST_PAUSE_MS = MINUTE_MS;
const MAX_PAUSE_MS = DAY_MS;

/** The pause after an authority responds with "too many requests" without a time. */
const RATE_LIMIT_PAUSE_MS = HOUR_MS;

interface Validity {
  readonly validFrom: Date;
  readonly validTo: Date;
}

interface Window {
  readonly start: Date;
  readonly end: Date;
}

/**
 * Returns when to renew, in milliseconds since 1970: after two thirds of the lifetime, or within
 * the window that the authority specifies.
 */
export function renewalTime({ validFrom, validTo }: Validity, window?: Window, random = Math.random): number {
  const own = validFrom.getTime() + (validTo.getTime() - validFrom.getTime()) * RENEWAL_SHARE;
  if (window === undefined) return own;
  const { start, end } = window;
  return Math.min(start.getTime() + random() * (end.getTime() - start.getTime()), validTo.getTime());
}

/**
 * Returns the milliseconds until the next attempt after a number of failures, with a random part,
 * so that many servers do not retry at once.
 */
export function pauseAfter(failures: number, error: unknown, random = Math.random): number {
  const own = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1)) * (0.75 + random() / 2);
  if (!(error instanceof AcmeProblem)) return own;
  const requested =
    error.retryAfter ?? (error.type === "rateLimited" || error.status === 429 ? RATE_LIMIT_PAUSE_MS : 0);
  return Math.max(own, requested + random() * MINUTE_MS);
}
