/** Work on several values at the same time, its results in order. */

interface Asked<T> {
  readonly next?: IteratorResult<T>;
  readonly failure?: { readonly reason: unknown };
}

/**
 * What `map` makes of each value, in order and as soon as it is ready; so many are worked on at the same time. Nothing
 * is worked on any more when it has ended. @throws what the source or `map` throws, after the results before it
 */
export async function* mapConcurrent<T, U>(
  source: AsyncIterable<T> | Iterable<T>,
  atOnce: number,
  map: (value: T) => Promise<U>,
): AsyncGenerator<U, void, undefined> {
  const iterator = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  const running: Promise<U>[] = [];
  let asking: Promise<Asked<T>> | undefined;
  let end: Asked<T> | undefined;
  const take = (asked: Asked<T>) => {
    asking = undefined;
    if (asked.next === undefined || asked.next.done === true) {
      end = asked;
      return;
    }
    const result = map(asked.next.value);
    // It is waited for in its turn.
    result.catch(() => {});
    running.push(result);
  };
  try {
    for (;;) {
      if (end === undefined && running.length < atOnce) asking ??= ask(iterator);
      const [head] = running;
      if (head === undefined && asking === undefined) break;
      // Whichever is there first: a slow source holds back no result, a slow result no value that there is room for.
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
    // One that waits for a value would end only after it.
    const ended = end === undefined ? iterator.return?.() : undefined;
    if (asking === undefined) await ended;
    else Promise.resolve(ended).catch(() => {});
    await Promise.allSettled(running);
  }
}

const settled = () => undefined;

/** Never rejects. */
async function ask<T>(iterator: AsyncIterator<T> | Iterator<T>): Promise<Asked<T>> {
  try {
    return { next: await iterator.next() };
  } catch (reason) {
    return { failure: { reason } };
  }
}
