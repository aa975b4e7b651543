/** Yields the items of each page, one at a time. */
export async function* oneByOne<T>(pages: AsyncIterable<readonly T[]>): AsyncGenerator<T, void, undefined> {
  // `yield*` would create two more promises per item.
  for await (const page of pages) for (const item of page) yield item;
}
