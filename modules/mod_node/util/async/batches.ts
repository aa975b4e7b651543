/**
 * Groups values into batches, for work that costs the same for one value as for many. The last
 * batch may be smaller.
 */
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
