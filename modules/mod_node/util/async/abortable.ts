/** The result of `work`, unless the signal aborts before; the work itself goes on. @throws the signal's reason */
export async function raceSignal<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  const { promise: left, reject } = Promise.withResolvers<never>();
  const leave = () => reject(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  try {
    return await Promise.race([work, left]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

/**
 * The values of `source` until the signal aborts. The source is then told to end, but a silent one is not awaited.
 *
 * @throws the signal's reason, or what the source throws
 */
export async function* abortableSource<T>(
  source: AsyncIterable<T> | Iterable<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T, void, undefined> {
  const iterator = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  let asking = false;
  let over = false;
  let giveUp: (reason: unknown) => void = () => {};
  // One listener for all values: a source may give many small ones.
  const leave = () => giveUp(signal?.reason);
  const ask = () =>
    new Promise<IteratorResult<T>>((resolve, reject) => {
      giveUp = reject;
      Promise.resolve(iterator.next()).then(resolve, reject);
    });
  signal?.addEventListener("abort", leave, { once: true });
  try {
    for (;;) {
      signal?.throwIfAborted();
      asking = true;
      const { done, value } = await ask();
      asking = false;
      over = done === true;
      if (over) return;
      yield value;
    }
  } finally {
    signal?.removeEventListener("abort", leave);
    const ended = over ? undefined : iterator.return?.();
    // A generator that waits for a value would end only after it.
    if (asking) Promise.resolve(ended).catch(() => {});
    else await ended;
  }
}
