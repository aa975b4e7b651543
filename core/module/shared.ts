import type { Release } from "./ledger.ts";

type Table = Record<string, unknown>;

interface Use {
  readonly owner: string | undefined;
}

/** Tables that modules share by path. A table exists as long as a module uses it. */
export class SharedTables {
  readonly #tables = new Map<string, { readonly table: Table; readonly uses: Set<Use> }>();

  /** Returns the table of a full path, and a function that ends this use of it. */
  use(path: string, owner?: string): { table: Table; release: Release } {
    let entry = this.#tables.get(path);
    if (entry === undefined) this.#tables.set(path, (entry = { table: Object.create(null) as Table, uses: new Set() }));
    const { table, uses } = entry;
    const use: Use = { owner };
    uses.add(use);
    return {
      table,
      release: () => {
        uses.delete(use);
        if (uses.size === 0) this.#tables.delete(path);
      },
    };
  }

  /** Returns one line for each use of a table by a module. */
  ownedBy(owner: string): string[] {
    return [...this.#tables].flatMap(([path, { uses }]) =>
      [...uses].filter((use) => use.owner === owner).map(() => `shared table ${path}`),
    );
  }
}

/**
 * Expands a path: "name" belongs to the module itself, "module/name" to its host; a path with a
 * leading slash is complete.
 */
export function sharedPath(path: string, host: string, module: string): string {
  if (path.startsWith("/")) return path;
  return path.includes("/") ? `/${host}/${path}` : `/${host}/${module}/${path}`;
}
