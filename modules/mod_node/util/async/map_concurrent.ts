/** Maps several values concurrently and yields the results in order. */

interface Pulled<T> {
  readonly next?: IteratorResult<T>;
  readonly failure?: { readonly reason: unknown };
}

/**
 * Yields the result of `map` for each value, in order and as soon as it is ready. At most `atOnce`
 * calls run at the same time, and none runs after the generator has ended.
 * @throws the error of the source or of `map`, after the results before it
 */
export async function* mapConcurrent<T, U>(
  source: AsyncIterable<T> | Iterable<T>,
  atOnce: number,
  map: (value: T) => Promise<U>,
): AsyncGenerator<U, void, undefined> {
  const iterator = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  const running: Promise<U>[] = [];
  let pulling: Promise<Pulled<T>> | undefined;
  let end: Pulled<T> | undefined;
  const take = (pulled: Pulled<T>) => {
    pulling = undefined;
    if (pulled.next === undefined || pulled.next.done === true) {
      end = pulled;
      return;
    }
    const result = map(pulled.next.value);
    // The error is thrown when the loop below awaits this result in order.
    result.catch(() => {});
    running.push(result);
  };
  try {
    for (;;) {
      if (end === undefined && running.length < atOnce) pulling ??= pull(iterator);
      const [head] = running;
      if (head === undefined && pulling === undefined) break;
      // Waits for the next value or for the first result, whichever comes first. So a slow source
      // delays no result, and a slow result does not keep the next value from starting.
      const pulled = await (head === undefined
        ? pulling
        : pulling && Promise.race([pulling, head.then(settled, settled)]));
      if (pulled !== undefined) {
        take(pulled);
        continue;
      }
      yield (await running[0]) as U;
      running.shift();
    }
    if (end?.failure !== undefined) throw end.failure.reason;
  } finally {
    // Not awaited while a value is pending: the generator ends only after that value.
    const ended = end === undefined ? iterator.return?.() : undefined;
    if (pulling === undefined) await ended;
    else Promise.resolve(ended).catch(() => {});
    await Promise.allSettled(running);
  }
}

const settled = () => undefined;

/** Never rejects. */
async function pull<T>(iterator: AsyncIterator<T> | Iterator<T>): Promise<Pulled<T>> {
  try {
    return { next: await iterator.next() };
  } catch (reason) {
    return { failure: { reason } };
  }
}
