/** Resolves when `ending` has settled, or after that many milliseconds. */
export async function settledWithin(milliseconds: number, ending: Promise<unknown>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, milliseconds);
  await Promise.race([ending.catch(() => undefined), late.promise]);
  clearTimeout(timer);
}
