/** Where the folders of a host stand, and where a restore puts them. */
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import type { SnapshotFolder } from "../repository/format.ts";

export interface HostPlaces {
  /** Absolute, like all of them; undefined when the host has none. */
  readonly config: string | undefined;
  readonly data: string;
}

/** The path of `inner` below `outer`; undefined when it is elsewhere. Empty for the same folder. */
export function below(outer: string, inner: string): string | undefined {
  const path = relative(outer, inner);
  return path === ".." || path.startsWith(`..${sep}`) || isAbsolute(path) ? undefined : path;
}

/**
 * A restore makes one folder: the config file is on top of it, and what stood below the folder of that file stands there
 * again, by the same paths. The data folder is `data` when it stood elsewhere.
 */
export class Layout {
  readonly #folders = new Map<string, SnapshotFolder>();
  readonly #places: HostPlaces;

  constructor(places: HostPlaces) {
    this.#places = places;
    const { config, data } = places;
    if (config !== undefined) this.#add({ name: "config", was: dirname(config), to: "" });
    const inside = config === undefined ? undefined : below(dirname(config), data);
    // Without a config file the data folder counts from where the program is started.
    if (config === undefined || inside !== undefined) this.#add({ name: "data", was: data, to: inside ?? "data" });
    else this.#add({ name: "data", was: data, to: "data", option: "data_path" });
  }

  get folders(): readonly SnapshotFolder[] {
    return [...this.#folders.values()];
  }

  /** A folder of a module, by its name there; gives its name in the snapshot. */
  folderOf(module: string, name: string, was: string): string {
    const own = `${module}_${name}`;
    const { to, option } = this.#place(was) ?? { to: own, option: own };
    return this.#add({ name: own, was, to, ...(option === undefined ? {} : { option }) });
  }

  /** The folder that has a file, by its name in the snapshot, and the path there. */
  placeOf(file: string): { readonly folder: string; readonly path: string } {
    for (const name of ["data", "config"]) {
      const folder = this.#folders.get(name);
      const path = folder && below(folder.was, file);
      if (path !== undefined) return { folder: name, path };
    }
    if (!this.#folders.has("files")) this.#add({ name: "files", was: sep, to: "files" });
    return { folder: "files", path: relative(sep, file) };
  }

  #place(path: string): { readonly to: string; readonly option?: string } | undefined {
    for (const name of ["data", "config"]) {
      const folder = this.#folders.get(name);
      const inside = folder && below(folder.was, path);
      if (folder !== undefined && inside !== undefined) return { to: join(folder.to, inside) };
    }
    return undefined;
  }

  #add(folder: SnapshotFolder): string {
    this.#folders.set(folder.name, folder);
    return folder.name;
  }

  /** The config file below the restored folder. */
  get config(): string | undefined {
    const { config } = this.#places;
    return config === undefined ? undefined : relative(dirname(config), config);
  }
}
