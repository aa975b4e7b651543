import type { Release } from "./ledger.ts";

type Table = Record<string, unknown>;

interface Use {
  readonly owner: string | undefined;
}

/** Tables that modules share by path. A table lives as long as a module that asked for it. */
export class SharedTables {
  readonly #tables = new Map<string, { readonly table: Table; readonly uses: Set<Use> }>();

  /** The table of a full path, and what ends this use of it by a module. */
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

  /** One line for each use of a table by a module. */
  ownedBy(owner: string): string[] {
    return [...this.#tables].flatMap(([path, { uses }]) =>
      [...uses].filter((use) => use.owner === owner).map(() => `shared table ${path}`),
    );
  }
}

/** "name" is of the module itself, "module/name" of its host; a path with a leading slash is taken as it is. */
export function sharedPath(path: string, host: string, module: string): string {
  if (path.startsWith("/")) return path;
  return path.includes("/") ? `/${host}/${path}` : `/${host}/${module}/${path}`;
}
