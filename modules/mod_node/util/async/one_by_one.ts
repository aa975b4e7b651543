/** What comes in pages, item by item. */
export async function* oneByOne<T>(pages: AsyncIterable<readonly T[]>): AsyncGenerator<T, void, undefined> {
  // Not by `yield*`, which makes two more promises for each.
  for await (const page of pages) for (const item of page) yield item;
}
