import { setTimeout as sleep } from "node:timers/promises";

export interface Patience {
  /** Milliseconds between two looks. */
  readonly every?: number;
  /** Milliseconds in all: so many that only what never comes takes them, on a busy machine, too. */
  readonly within?: number;
}

/**
 * Looks again and again until something holds. A loop without an end of its own would hold up the
 * whole run, and its failure would not say what was missing.
 *
 * @param what is awaited, as a sentence: the error names it
 * @throws Error when it does not hold in time, also when a look itself never ends
 */
export async function eventually(
  what: string,
  holds: () => unknown,
  { every = 10, within = 120_000 }: Patience = {},
): Promise<void> {
  const over = new AbortController();
  const tooLate = sleep(within, undefined, { signal: over.signal }).then(() => {
    throw new Error(`This did not come within ${within / 1000} s: ${what}`);
  });
  // Where it holds in time nobody hears of it.
  tooLate.catch(() => undefined);
  try {
    while (!(await Promise.race([holds(), tooLate]))) await Promise.race([sleep(every), tooLate]);
  } finally {
    over.abort();
  }
}
