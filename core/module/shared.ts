import type { Release } from "./ledger.ts";

type Table = Record<string, unknown>;

/** Tables that modules share by path. A table lives as long as a module that asked for it. */
export class SharedTables {
  readonly #tables = new Map<string, { readonly table: Table; users: number }>();

  /** The table of a full path, and what ends this use of it. */
  use(path: string): { table: Table; release: Release } {
    let entry = this.#tables.get(path);
    if (entry === undefined) this.#tables.set(path, (entry = { table: Object.create(null) as Table, users: 0 }));
    const used = entry;
    used.users += 1;
    return {
      table: used.table,
      release: () => {
        used.users -= 1;
        if (used.users === 0) this.#tables.delete(path);
      },
    };
  }
}

/** "name" is of the module itself, "module/name" of its host; a path with a leading slash is taken as it is. */
export function sharedPath(path: string, host: string, module: string): string {
  if (path.startsWith("/")) return path;
  return path.includes("/") ? `/${host}/${path}` : `/${host}/${module}/${path}`;
}
