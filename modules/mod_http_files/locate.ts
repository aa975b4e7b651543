import type { Stats } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { dirname, join, sep } from "node:path";

/** Something below a served folder. All paths are real: no link is left in them. */
export interface Found {
  readonly path: string;
  /** The folder that nothing may be served from outside of. */
  readonly root: string;
  readonly stats: Stats;
}

/**
 * Finds what a decoded path below `base` names; `base` may be a file, which the empty path names. A number is the
 * status to answer: 400 for paths that climb out or hold a NUL, 404 for what does not exist, is hidden or lies outside
 * of the root behind a link, 403 for what may not be read and for what is neither file nor folder (never opened).
 */
export async function locate(base: string, relative: string, hidden: boolean): Promise<Found | number> {
  const segments = segmentsOf(relative);
  if (segments === undefined) return 400;
  if (!hidden && segments.some((segment) => segment.startsWith("."))) return 404;
  try {
    const top = await realpath(base);
    const path = segments.length === 0 ? top : await realpath(join(top, ...segments));
    const stats = await stat(path);
    const root = segments.length === 0 && !stats.isDirectory() ? dirname(top) : top;
    if (!isWithin(root, path)) return 404;
    return stats.isFile() || stats.isDirectory() ? { path, root, stats } : 403;
  } catch (error) {
    return statusOf(error);
  }
}

/** A regular file beside or below a found one; undefined when there is none that may be served. */
export async function locateFile(root: string, candidate: string): Promise<Found | undefined> {
  try {
    // Mostly there is none, which this tells for less than all links on the way.
    const stats = await stat(candidate);
    if (!stats.isFile()) return undefined;
    const path = await realpath(candidate);
    return isWithin(root, path) ? { path, root, stats } : undefined;
  } catch (error) {
    statusOf(error);
    return undefined;
  }
}

const statuses: Readonly<Record<string, number | undefined>> = {
  ENOENT: 404,
  ENOTDIR: 404,
  ENAMETOOLONG: 404,
  ELOOP: 404,
  EACCES: 403,
  EPERM: 403,
};

/** The status that an error of the file system stands for; throws it again when it is a failure of the server. */
export function statusOf(error: unknown): number {
  const status = statuses[(error as NodeJS.ErrnoException).code ?? ""];
  if (status === undefined) throw error;
  return status;
}

/** Names on the way down, dots resolved; undefined for a path that climbs out or that no file can have. */
function segmentsOf(path: string): string[] | undefined {
  if (path.includes("\0") || (sep === "\\" && /[\\:]/.test(path))) return undefined;
  const segments: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "" || segment === ".") continue;
    if (segment !== "..") segments.push(segment);
    else if (segments.pop() === undefined) return undefined;
  }
  return segments;
}

function isWithin(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);
}
