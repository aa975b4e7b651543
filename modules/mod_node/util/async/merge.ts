/** Merges several streams into one. */

/**
 * The values of all sources as they come; `stop` is called when sources that have not ended are no
 * longer wanted.
 */
export async function* merge<T>(
  sources: readonly AsyncIterable<T>[],
  stop: () => void,
): AsyncGenerator<T, void, undefined> {
  type Step = { readonly iterator: AsyncIterator<T>; readonly result: IteratorResult<T> };
  const steps = new Map<AsyncIterator<T>, Promise<Step>>();
  const advance = (iterator: AsyncIterator<T>) => {
    const step = iterator.next().then((result) => ({ iterator, result }));
    // Nobody may be waiting when it fails.
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
