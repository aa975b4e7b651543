/**
 * What `map` makes of each value, in order; so many are worked on at the same time. @throws what the source or `map`
 * throws, after the results before it
 */
export async function* mapAhead<T, U>(
  source: AsyncIterable<T> | Iterable<T>,
  atOnce: number,
  map: (value: T) => Promise<U>,
): AsyncGenerator<U, void, undefined> {
  const running: Promise<U>[] = [];
  let failed: { readonly reason: unknown } | undefined;
  const told = failing(source, (reason) => {
    failed = { reason };
  });
  for await (const value of told) {
    const result = map(value);
    // It is waited for in its turn.
    result.catch(() => {});
    running.push(result);
    if (running.length >= atOnce) yield (await running.shift()) as U;
  }
  for (const result of running) yield await result;
  if (failed !== undefined) throw failed.reason;
}

/** The same values; what the source throws ends them, and is told instead. */
async function* failing<T>(
  source: AsyncIterable<T> | Iterable<T>,
  tell: (reason: unknown) => void,
): AsyncGenerator<T, void, undefined> {
  const iterator = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  let over = false;
  try {
    for (;;) {
      let next: IteratorResult<T>;
      try {
        next = await iterator.next();
      } catch (reason) {
        over = true;
        tell(reason);
        return;
      }
      over = next.done === true;
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    if (!over) await iterator.return?.();
  }
}
