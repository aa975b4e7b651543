/**
 * Makes the entries of the start page from the items of modules, with the URLs that they have now.
 */
import type { OwnedItem, StartPageItem } from "../../types.ts";

export interface StartEntry {
  readonly name: string;
  readonly help: string;
  readonly module: string;
  /** "*" for every host. */
  readonly host: string;
  /** The best URL first; empty while the item cannot be opened. */
  readonly urls: readonly string[];
}

/**
 * Returns the entries in the order in which their items were added. An item that throws has no
 * URLs, and its module logs why.
 */
export function startEntries(items: Iterable<OwnedItem<StartPageItem>>): StartEntry[] {
  return [...items].map(({ item, owner }) => {
    const { name, help } = item;
    const { name: module, host } = owner;
    try {
      return { name, help, module, host, urls: [...new Set(item.urls())] };
    } catch (error) {
      owner.log.error("The URLs of its start-page item %s are unknown: %s", name, error);
      return { name, help, module, host, urls: [] };
    }
  });
}
