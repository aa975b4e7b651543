/** Waits for a promise for a limited time; the underlying work continues after that. */

/**
 * Resolves or rejects as `ending` does.
 * @throws Error if `ending` has not settled after that many milliseconds
 */
export async function within<T>(milliseconds: number, ending: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error("there was no response in time")), Math.max(0, milliseconds));
  ending.catch(() => {});
  try {
    return await Promise.race([ending, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves when `ending` has settled, or after that many milliseconds. */
export const settledWithin = (milliseconds: number, ending: Promise<unknown>): Promise<void> =>
  within(milliseconds, ending).then(
    () => {},
    () => {},
  );
