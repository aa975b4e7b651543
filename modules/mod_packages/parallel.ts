/**
 * Runs work for each item, for at most `most` of them at the same time. After one has failed, it
 * starts no further ones.
 */
export async function eachInParallel<T, R>(
  items: readonly T[],
  most: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  let failed: { readonly error: unknown } | undefined;
  const worker = async () => {
    while (next < items.length && failed === undefined) {
      const at = next++;
      try {
        results[at] = await work(items[at] as T);
      } catch (error) {
        failed ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: most }, worker));
  if (failed !== undefined) throw (failed as { readonly error: unknown }).error;
  return results;
}
