/** Paths of permissions: compared after all links are followed. */
import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";

/** The word for a module's own folder below `data_path`. */
export const DATA = "data";

/** Returns the absolute path of an item; `data` is the module's own data folder. */
export function absolutePath(item: string, folder: string, dataFolder: string): string {
  return item === DATA ? dataFolder : resolve(folder, item);
}

/**
 * Returns the path with all links followed. The part of it that does not exist is kept as it is.
 */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const above = dirname(path);
    return above === path ? path : join(realPath(above), basename(path));
  }
}

/** Returns true if a path is a folder, or something below it. Both must be real paths. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
