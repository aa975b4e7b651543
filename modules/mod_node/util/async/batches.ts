/** The same values, so many at a time: for work that costs as much for many as for one. The last page may be shorter. */
export async function* batches<T>(source: AsyncIterable<T>, size: number): AsyncGenerator<T[], void, undefined> {
  let page: T[] = [];
  for await (const value of source) {
    page.push(value);
    if (page.length < size) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}
