/** Lists a directory page by page. The kernel may also begin again. */
import { mapConcurrent } from "../util/async/map_concurrent.ts";
import type { OpenListing } from "./fuse/file_system.ts";
import type { DirectoryEntry } from "./fuse/wire.ts";

/** Maximum number of children that are looked up concurrently. */
const MAX_CONCURRENT = 16;

export interface ListingSource<T> {
  /** Lists from the first entry on. */
  begin(signal: AbortSignal): AsyncIterator<T>;
  /** Returns the entry without a lookup. */
  name(item: T): DirectoryEntry;
  /** Returns the entry with its node. Never rejects. */
  look(item: T, signal: AbortSignal): Promise<DirectoryEntry>;
}

/** Only the entries of the last page and a few after it stay in memory. */
export function pagedListing<T>(listed: ListingSource<T>): OpenListing {
  let reading: { readonly source: AsyncIterator<T>; readonly leaving: AbortController } | undefined;
  /** Entries that were read, from number `first` on. */
  let page: { readonly item: T; looked?: Promise<DirectoryEntry> }[] = [];
  let first = 0;

  function close(): void {
    reading?.leaving.abort();
    void reading?.source.return?.()?.then(undefined, () => undefined);
    reading = undefined;
    page = [];
    first = 0;
  }

  function open() {
    const leaving = new AbortController();
    return { leaving, source: listed.begin(leaving.signal) };
  }

  async function* itemsFrom(number: number) {
    reading ??= open();
    const { source } = reading;
    const passed = Math.min(number - first, page.length);
    page.splice(0, passed);
    first += passed;
    for (let at = number; ; at += 1) {
      while (at - first >= page.length) {
        const { done, value } = await source.next();
        if (done === true) return;
        page.push({ item: value });
      }
      yield page[at - first] as (typeof page)[number];
    }
  }

  async function* from(number: number, withNodes: boolean, signal: AbortSignal): AsyncGenerator<DirectoryEntry> {
    if (number < first) close();
    signal.addEventListener("abort", close, { once: true });
    try {
      const items = itemsFrom(number);
      if (withNodes) {
        yield* mapConcurrent(items, MAX_CONCURRENT, (entry) => {
          entry.looked ??= listed.look(entry.item, (reading as NonNullable<typeof reading>).leaving.signal);
          return entry.looked;
        });
      } else {
        for await (const { item } of items) yield listed.name(item);
      }
    } finally {
      signal.removeEventListener("abort", close);
    }
  }
  return { from, close };
}
