/**
 * Whether another process, such as go-ipfs, holds a system lock on a file. Node.js has no API for these locks; Linux
 * lists them in `/proc/locks`.
 */
import { readdir, readFile, readlink, realpath, stat } from "node:fs/promises";
import { join } from "node:path";

/** False for a missing file; undefined where the system does not tell. */
export async function isLockedElsewhere(path: string, locks = "/proc/locks"): Promise<boolean | undefined> {
  let place: string;
  let inode: number;
  try {
    place = await realpath(path);
    inode = (await stat(place)).ino;
  } catch {
    return false;
  }
  const listed = await readFile(locks, "latin1").catch(() => undefined);
  if (listed === undefined) return undefined;
  for (const { pid } of holdersOf(inode, listed)) if (await hasOpen(pid, place)) return true;
  return false;
}

/** Lines look like `5: FLOCK ADVISORY WRITE 2140 fe:00:10871148 0 EOF`; those of waiters have `->` after the number. */
function holdersOf(inode: number, locks: string): { readonly pid: string }[] {
  return locks.split("\n").flatMap((line) => {
    const [, pid, found] = /^\d+: .* (-?\d+) \w+:\w+:(\d+) \d+ \w+$/.exec(line) ?? [];
    return pid !== undefined && Number(found) === inode ? [{ pid }] : [];
  });
}

/** Other file systems use the same inode numbers. A process that cannot be inspected counts as having the file open. */
async function hasOpen(pid: string, place: string): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  const files = await readdir(folder).catch(() => undefined);
  if (files === undefined) return true;
  const places = await Promise.all(files.map((file) => readlink(join(folder, file)).catch(() => "")));
  return places.includes(place);
}
