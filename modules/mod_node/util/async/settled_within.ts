/** Resolves when something has ended, in whatever way, or when so many milliseconds have passed. */
export async function settledWithin(milliseconds: number, ending: Promise<unknown>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, milliseconds);
  await Promise.race([ending.catch(() => undefined), late.promise]);
  clearTimeout(timer);
}
