/** Maps the folders of a host to folders of a restore. */
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import type { SnapshotFolder } from "../repository/format.ts";

export interface HostPaths {
  /** Absolute path, like the others; undefined when the host has no config file. */
  readonly config: string | undefined;
  readonly data: string;
}

/**
 * Returns the path of `inner` relative to `outer`, empty for the same folder; undefined when it is
 * not below it.
 */
export function below(outer: string, inner: string): string | undefined {
  const path = relative(outer, inner);
  return path === ".." || path.startsWith(`..${sep}`) || isAbsolute(path) ? undefined : path;
}

/**
 * A restore makes one folder. It contains the config file at the top, and everything that was below
 * the config file's folder at the same relative paths. A data folder from elsewhere becomes `data`.
 */
export class Layout {
  readonly #folders = new Map<string, SnapshotFolder>();
  readonly #paths: HostPaths;

  constructor(paths: HostPaths) {
    this.#paths = paths;
    const { config, data } = paths;
    if (config !== undefined) this.#add({ name: "config", was: dirname(config), to: "" });
    const inside = config === undefined ? undefined : below(dirname(config), data);
    // Without a config file, the data folder is relative to the working directory.
    if (config === undefined || inside !== undefined) this.#add({ name: "data", was: data, to: inside ?? "data" });
    else this.#add({ name: "data", was: data, to: "data", option: "data_path" });
  }

  get folders(): readonly SnapshotFolder[] {
    return [...this.#folders.values()];
  }

  /**
   * Adds a folder of a module, by the module's name for it. Returns its name in the snapshot.
   * `isSet` tells whether an option has a value.
   */
  folderOf(module: string, name: string, was: string, isSet: (option: string) => boolean): string {
    const own = `${module}_${name}`;
    const to = this.#restoredPath(was);
    const option = to === undefined || isSet(own) ? { option: own } : {};
    return this.#add({ name: own, was, to: to ?? own, ...option });
  }

  /** Returns the name of the folder that contains a file, and the path of the file in it. */
  locationOf(file: string): { readonly folder: string; readonly path: string } {
    for (const name of ["data", "config"]) {
      const folder = this.#folders.get(name);
      const path = folder && below(folder.was, file);
      if (path !== undefined) return { folder: name, path };
    }
    if (!this.#folders.has("files")) this.#add({ name: "files", was: sep, to: "files" });
    return { folder: "files", path: relative(sep, file) };
  }

  #restoredPath(path: string): string | undefined {
    for (const name of ["data", "config"]) {
      const folder = this.#folders.get(name);
      const inside = folder && below(folder.was, path);
      if (folder !== undefined && inside !== undefined) return join(folder.to, inside);
    }
    return undefined;
  }

  #add(folder: SnapshotFolder): string {
    this.#folders.set(folder.name, folder);
    return folder.name;
  }

  /** Returns the path of the config file below the restored folder. */
  get config(): string | undefined {
    const { config } = this.#paths;
    return config === undefined ? undefined : relative(dirname(config), config);
  }
}
