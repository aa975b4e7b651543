/** Paths of permissions: compared after all links are followed. */
import { readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";

/** The word for a module's own folder below `data_path`. */
export const DATA = "data";

/** Returns the absolute path of an item; `data` is the module's own data folder. */
export function absolutePath(item: string, folder: string, dataFolder: string): string {
  return item === DATA ? dataFolder : resolve(folder, item);
}

/** Maximum number of links that lead to one another, as in the kernel. */
const MAX_LINKS = 40;

/**
 * Returns the path with all links followed, also those that lead to nothing yet. The part of it
 * that does not exist is kept as it is.
 */
export function realPath(path: string, links = MAX_LINKS): string {
  try {
    return realpathSync(path);
  } catch {
    const above = dirname(path);
    if (above === path) return path;
    const full = join(realPath(above, links), basename(path));
    const target = links > 0 ? linkTarget(full) : undefined;
    return target === undefined ? full : realPath(resolve(dirname(full), target), links - 1);
  }
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** Returns true if a path is a folder, or something below it. Both must be real paths. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
