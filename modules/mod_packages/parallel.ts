/** Runs work for each item, `most` at a time. After a failure no more items are begun. */
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
