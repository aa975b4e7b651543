/** Works on several values concurrently, and gives the results in order. */

interface Pulled<T> {
  readonly next?: IteratorResult<T>;
  readonly failure?: { readonly reason: unknown };
}

/**
 * The result of `map` for each value, in order and as soon as it is ready, with at most `atOnce`
 * calls under way. No work is under way after it has ended. @throws what the source or `map`
 * throws, after the results before it
 */
export async function* mapConcurrent<T, U>(
  source: AsyncIterable<T> | Iterable<T>,
  atOnce: number,
  map: (value: T) => Promise<U>,
): AsyncGenerator<U, void, undefined> {
  const iterator = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  const running: Promise<U>[] = [];
  let asking: Promise<Pulled<T>> | undefined;
  let end: Pulled<T> | undefined;
  const take = (asked: Pulled<T>) => {
    asking = undefined;
    if (asked.next === undefined || asked.next.done === true) {
      end = asked;
      return;
    }
    const result = map(asked.next.value);
    // The rejection is seen when the result is awaited in order.
    result.catch(() => {});
    running.push(result);
  };
  try {
    for (;;) {
      if (end === undefined && running.length < atOnce) asking ??= pull(iterator);
      const [head] = running;
      if (head === undefined && asking === undefined) break;
      // Whichever comes first: a slow source delays no result, and a slow result delays no value
      // that there is room for.
      const asked = await (head === undefined ? asking : asking && Promise.race([asking, head.then(settled, settled)]));
      if (asked !== undefined) {
        take(asked);
        continue;
      }
      yield (await running[0]) as U;
      running.shift();
    }
    if (end?.failure !== undefined) throw end.failure.reason;
  } finally {
    // A generator that waits for a value would end only after it.
    const ended = end === undefined ? iterator.return?.() : undefined;
    if (asking === undefined) await ended;
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
