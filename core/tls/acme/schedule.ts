/** When certificates are renewed, and when a failure is tried again. */
import { AcmeProblem } from "./transport.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** A certificate is renewed when this share of its time is over. */
const RENEWAL_SHARE = 2 / 3;

/** The first pause after a failure; each that follows is twice as long. */
const FIRST_PAUSE_MS = MINUTE_MS;
const MAX_PAUSE_MS = DAY_MS;

/** An authority that says "too many" without saying for how long is left alone for as long. */
const RATE_LIMIT_PAUSE_MS = HOUR_MS;

interface Validity {
  readonly validFrom: Date;
  readonly validTo: Date;
}

interface Window {
  readonly start: Date;
  readonly end: Date;
}

/** When to renew, milliseconds since 1970: at two thirds of its time, or within the window that the authority names. */
export function renewalTime({ validFrom, validTo }: Validity, window?: Window, random = Math.random): number {
  const own = validFrom.getTime() + (validTo.getTime() - validFrom.getTime()) * RENEWAL_SHARE;
  if (window === undefined) return own;
  const { start, end } = window;
  return Math.min(start.getTime() + random() * (end.getTime() - start.getTime()), validTo.getTime());
}

/** Milliseconds until the next try after so many failures, spread so that many servers do not come at once. */
export function pauseAfter(failures: number, error: unknown, random = Math.random): number {
  const own = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1)) * (0.75 + random() / 2);
  if (!(error instanceof AcmeProblem)) return own;
  const asked = error.retryAfter ?? (error.type === "rateLimited" || error.status === 429 ? RATE_LIMIT_PAUSE_MS : 0);
  return Math.max(own, asked + random() * MINUTE_MS);
}
