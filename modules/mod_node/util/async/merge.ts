/** Merges several streams into one. */

/**
 * Yields the values of all sources as they arrive. When the consumer leaves early, or a source
 * fails, it calls `stop` to end the other sources.
 */
export async function* merge<T>(
  sources: readonly AsyncIterable<T>[],
  stop: () => void,
): AsyncGenerator<T, void, undefined> {
  type Step = { readonly iterator: AsyncIterator<T>; readonly result: IteratorResult<T> };
  const steps = new Map<AsyncIterator<T>, Promise<Step>>();
  const advance = (iterator: AsyncIterator<T>) => {
    const step = iterator.next().then((result) => ({ iterator, result }));
    // Marks the promise as handled: it may reject while nobody awaits it.
    step.catch(() => undefined);
    steps.set(iterator, step);
  };
  for (const source of sources) advance(source[Symbol.asyncIterator]());
  try {
    while (steps.size > 0) {
      const { iterator, result } = await Promise.race(steps.values());
      if (result.done) steps.delete(iterator);
      else {
        advance(iterator);
        yield result.value;
      }
    }
  } finally {
    if (steps.size > 0) stop();
    for (const iterator of steps.keys()) void iterator.return?.().catch(() => undefined);
  }
}
