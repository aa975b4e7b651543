/** Waiting that ends after a time; what is waited for goes on. */

/**
 * What `ending` resolves with. @throws what it rejects with, or an Error after that many
 * milliseconds
 */
export async function within<T>(milliseconds: number, ending: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error("there was no answer in time")), Math.max(0, milliseconds));
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
