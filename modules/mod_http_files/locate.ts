import type { Stats } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { type Disk, threads } from "./disk.ts";

/** A file or folder below a served folder. No link is on the path from the folder to it. */
export interface Found {
  readonly path: string;
  /** The folder outside of which nothing may be served. */
  readonly root: string;
  readonly stats: Stats;
  /** The access to the file system that found it, and can read it. */
  readonly disk: Disk;
}

export interface LocateOptions {
  readonly hidden: boolean;
  /** Returns how to access a folder. */
  diskOf(folder: string): Disk;
}

/**
 * Finds what a decoded path below `base` names; `base` may be a file, which the empty path names.
 * Returns a number as the status of an error. 400: the path leaves the folder or contains a NUL.
 * 404: it does not exist, is hidden, or a link leads out of the root. 403: it may not be read, or
 * is neither file nor folder (and is never opened).
 */
export async function locate(base: string, relative: string, options: LocateOptions): Promise<Found | number> {
  const segments = segmentsOf(relative);
  if (segments === undefined) return 400;
  if (!options.hidden && segments.some((segment) => segment.startsWith("."))) return 404;
  try {
    const path = join(base, ...segments);
    const disk = options.diskOf(dirname(path));
    const stats = await walk(disk, base, segments);
    if (stats === undefined) return 404;
    if (stats.isSymbolicLink()) return await throughLinks(base, segments);
    if (!stats.isFile() && !stats.isDirectory()) return 403;
    return { path, root: rootOf(base, segments, stats), stats, disk };
  } catch (error) {
    return statusOf(error);
  }
}

/**
 * Returns the stats of the last segment, or of the first link on the path; undefined if the path
 * does not exist.
 */
async function walk(disk: Disk, base: string, segments: readonly string[]): Promise<Stats | undefined> {
  let path = base;
  let stats = segments.length === 0 ? await disk.lstat(base) : undefined;
  for (const segment of segments) {
    path = join(path, segment);
    stats = await disk.lstat(path);
    if (stats === undefined || stats.isSymbolicLink()) return stats;
  }
  return stats;
}

async function throughLinks(base: string, segments: readonly string[]): Promise<Found | number> {
  const top = await realpath(base);
  const path = segments.length === 0 ? top : await realpath(join(top, ...segments));
  const stats = await stat(path);
  const root = rootOf(top, segments, stats);
  if (!isWithin(root, path)) return 404;
  return stats.isFile() || stats.isDirectory() ? { path, root, stats, disk: threads } : 403;
}

/** The root of a single file is the folder that contains it. */
function rootOf(base: string, segments: readonly string[], stats: Stats): string {
  return segments.length === 0 && !stats.isDirectory() ? dirname(base) : base;
}

/**
 * Resolves the links in the paths of a found file, for callers that compare paths. Returns
 * undefined if it is not in the root then.
 */
export async function withRealPaths(found: Found): Promise<Found | undefined> {
  const [path, root] = await Promise.all([realpath(found.path), realpath(found.root)]);
  return isWithin(root, path) ? { ...found, path, root } : undefined;
}

/**
 * Returns a regular file next to a found file, or below a found folder; undefined if it does not
 * exist or may not be served.
 */
export async function locateFile(found: Found, candidate: string): Promise<Found | undefined> {
  const { root, disk } = found;
  const folder = found.stats.isDirectory() ? found.path : dirname(found.path);
  try {
    const stats = await disk.lstat(candidate);
    if (stats === undefined) return undefined;
    if (stats.isFile() && dirname(candidate) === folder) return { path: candidate, root, stats, disk };
    const [path, top] = await Promise.all([realpath(candidate), realpath(root)]);
    const real = await stat(path);
    return real.isFile() && isWithin(top, path) ? { path, root: top, stats: real, disk: threads } : undefined;
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

/**
 * Returns the status for a file system error. Rethrows the error if it is a failure of the server.
 */
export function statusOf(error: unknown): number {
  const status = statuses[(error as NodeJS.ErrnoException).code ?? ""];
  if (status === undefined) throw error;
  return status;
}

/**
 * Returns the segments of a path with dots resolved; undefined for a path that leaves the folder,
 * or that no file can have.
 */
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
