import { setTimeout as sleep } from "node:timers/promises";

export interface Patience {
  /** Milliseconds between two checks. */
  readonly every?: number;
  /** Milliseconds until it gives up. The default is long enough for a busy machine. */
  readonly within?: number;
}

/**
 * Checks a condition repeatedly until it is true. A loop without a limit would block the whole run,
 * and its failure would not say what was missing.
 * @param what the awaited condition as a sentence, for the error
 * @throws Error if the condition is not true in time, or if a check never ends
 */
export async function eventually(
  what: string,
  holds: () => unknown,
  { every = 10, within = 120_000 }: Patience = {},
): Promise<void> {
  const over = new AbortController();
  const tooLate = sleep(within, undefined, { signal: over.signal }).then(() => {
    throw new Error(`Gave up after ${within / 1000} s of waiting for this: ${what}`);
  });
  // If the condition is true in time, nobody handles this rejection.
  tooLate.catch(() => undefined);
  try {
    while (!(await Promise.race([holds(), tooLate]))) await Promise.race([sleep(every), tooLate]);
  } finally {
    over.abort();
  }
}
