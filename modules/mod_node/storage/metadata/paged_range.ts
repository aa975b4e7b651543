import type { MetadataStore } from "./store.ts";

/** Keys are of CIDs mostly: some hundred kilobytes. */
const pageSize = 4096;

/**
 * All below a prefix, for who may take long over each. It is read page by page: a store cannot use its room again while
 * a view of one moment is open. What changes meanwhile may be told as it was or as it is; all else is told once.
 */
export async function* pagedRange(
  store: Pick<MetadataStore, "range">,
  prefix: string,
): AsyncGenerator<readonly [key: string, value: Uint8Array], void, undefined> {
  let page = await Array.fromAsync(store.range({ prefix, limit: pageSize }));
  for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
    yield* page;
    page =
      page.length < pageSize ? [] : await Array.fromAsync(store.range({ prefix, after: last[0], limit: pageSize }));
  }
}
