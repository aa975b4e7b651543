import type { MetadataStore } from "./store.ts";

/** Most keys are CIDs: a page is some hundred kilobytes. */
const pageSize = 4096;

/**
 * All entries below a prefix, for readers that may take long over each. It is read page by page, since a store cannot
 * reuse space while a snapshot is open. An entry that changes meanwhile may be given in its old or new state; every
 * other entry is given once.
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

/** Keys that are read at once, and given together: few enough that whoever works on them can stop in between. */
const KEY_PAGE = 1024;

/** The same of keys alone, in pages. */
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
