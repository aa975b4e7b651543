import type { MetadataStore } from "./store.ts";

/** Most keys are CIDs, so a page is a few hundred kilobytes. */
const pageSize = 4096;

/**
 * Yields all entries below a prefix, for readers that may take long over each entry. The entries
 * are read page by page, because a store cannot reuse space while a snapshot is open. An entry that
 * changes in the meantime is yielded once, in its old or its new state, or both. Every other entry
 * is yielded once.
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

/**
 * Number of keys that are read and yielded together. It is small, so that a reader can stop between
 * pages.
 */
const KEY_PAGE = 1024;

/** Yields the keys below a prefix in pages. */
export async function* keyPages(
  store: Pick<MetadataStore, "keys">,
  prefix: string,
): AsyncGenerator<readonly string[], void, undefined> {
  let page = await store.keys({ prefix, limit: KEY_PAGE });
  for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
    yield page;
    page = page.length < KEY_PAGE ? [] : await store.keys({ prefix, after: last, limit: KEY_PAGE });
  }
}
