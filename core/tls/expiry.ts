/** Warns about certificates that expire soon. */
import type { Loaded } from "./pair.ts";

const DAY_MS = 86_400_000;

/** Days before the expiry, in ascending order. */
const WARNING_DAYS: readonly number[] = [1, 7, 14, 30];

/**
 * Certificates with a short lifetime are renewed late, so there is no warning before this share of
 * it is left.
 */
const LAST_SHARE = 1 / 3;

type Validity = Pick<Loaded, "validFrom" | "validTo" | "fingerprint">;

/**
 * Returns the threshold that a certificate has reached: 30, 14, 7 or 1 days before its expiry, 0
 * after it; undefined if no warning is due.
 */
export function threshold({ validFrom, validTo }: Validity, now: number): number | undefined {
  const left = validTo.getTime() - now;
  if (left <= 0) return 0;
  if (left > (validTo.getTime() - validFrom.getTime()) * LAST_SHARE) return undefined;
  return WARNING_DAYS.find((days) => left <= days * DAY_MS);
}

export class ExpiryWarnings {
  readonly #warn: (text: string, ...values: unknown[]) => void;
  /** The nearest threshold that was logged, by name and certificate. */
  #warned = new Map<string, number>();
  #seen = new Set<string>();

  constructor(warn: (text: string, ...values: unknown[]) => void) {
    this.#warn = warn;
  }

  /** Warns about each certificate once for each threshold that it reaches. */
  look(certificates: ReadonlyMap<string, Validity>, now = Date.now()): void {
    const warned = new Map<string, number>();
    const seen = new Set<string>();
    for (const [name, certificate] of certificates) {
      const key = `${name} ${certificate.fingerprint}`;
      const isKnown = this.#seen.has(key);
      seen.add(key);
      const known = this.#warned.get(key);
      const reached = threshold(certificate, now);
      if (reached !== undefined && (known === undefined || reached < known)) {
        const served = name === "*" ? "for clients that request no other name" : `for ${name}`;
        const until = certificate.validTo.toISOString();
        const within = reached === 1 ? "a day" : `${reached} days`;
        if (reached > 0) this.#warn("The certificate %s expires in less than %s, on %s", served, within, until);
        // A certificate that had expired before it was read was reported then.
        else if (isKnown) this.#warn("The certificate %s has expired on %s", served, until);
      }
      const last = reached === undefined ? known : Math.min(reached, known ?? reached);
      if (last !== undefined) warned.set(key, last);
    }
    this.#warned = warned;
    this.#seen = seen;
  }
}
