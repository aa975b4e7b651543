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
  for await (const value of source) {
    const result = map(value);
    // It is waited for in its turn.
    result.catch(() => {});
    running.push(result);
    if (running.length >= atOnce) yield (await running.shift()) as U;
  }
  for (const result of running) yield await result;
}
