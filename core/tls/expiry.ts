/** Warns of certificates that expire soon. */
import type { Loaded } from "./pair.ts";

const DAY_MS = 86_400_000;

/** Days before the end, the last ones first. */
const WARNING_DAYS: readonly number[] = [1, 7, 14, 30];

/** Certificates of few days are renewed late: nothing is said before this share of their time is left. */
const LAST_SHARE = 1 / 3;

type Validity = Pick<Loaded, "validFrom" | "validTo" | "fingerprint">;

/**
 * The threshold that a certificate is within: 30, 14, 7 or 1 days before its end, 0 after it; undefined where there is
 * nothing to say.
 */
export function threshold({ validFrom, validTo }: Validity, now: number): number | undefined {
  const left = validTo.getTime() - now;
  if (left <= 0) return 0;
  if (left > (validTo.getTime() - validFrom.getTime()) * LAST_SHARE) return undefined;
  return WARNING_DAYS.find((days) => left <= days * DAY_MS);
}

export class ExpiryWarnings {
  readonly #warn: (text: string, ...values: unknown[]) => void;
  /** The nearest threshold that was told, by name and certificate. */
  #told = new Map<string, number>();
  #seen = new Set<string>();

  constructor(warn: (text: string, ...values: unknown[]) => void) {
    this.#warn = warn;
  }

  /** Warns of each certificate once for each threshold that it has come to. */
  look(certificates: ReadonlyMap<string, Validity>, now = Date.now()): void {
    const told = new Map<string, number>();
    const seen = new Set<string>();
    for (const [name, certificate] of certificates) {
      const key = `${name} ${certificate.fingerprint}`;
      const isKnown = this.#seen.has(key);
      seen.add(key);
      const known = this.#told.get(key);
      const reached = threshold(certificate, now);
      if (reached !== undefined && (known === undefined || reached < known)) {
        const served = name === "*" ? "of clients that ask for no other" : `for ${name}`;
        const until = certificate.validTo.toISOString();
        const within = reached === 1 ? "a day" : `${reached} days`;
        if (reached > 0) this.#warn("The certificate %s expires in less than %s, on %s", served, within, until);
        // Of one that has expired before it is read, its reader has told.
        else if (isKnown) this.#warn("The certificate %s has expired on %s", served, until);
      }
      const last = reached === undefined ? known : Math.min(reached, known ?? reached);
      if (last !== undefined) told.set(key, last);
    }
    this.#told = told;
    this.#seen = seen;
  }
}
