/**
 * Detects system locks of other processes, such as go-ipfs. Node.js has no API for these locks;
 * Linux lists them in `/proc/locks`.
 */
import { readdir, readFile, readlink, realpath, stat } from "node:fs/promises";
import { join } from "node:path";

/**
 * Whether another process has locked a file. False for a missing file; undefined when the system
 * does not say.
 */
export async function isLockedElsewhere(path: string, locks = "/proc/locks"): Promise<boolean | undefined> {
  let target: string;
  let inode: number;
  try {
    target = await realpath(path);
    inode = (await stat(target)).ino;
  } catch {
    return false;
  }
  const listed = await readFile(locks, "latin1").catch(() => undefined);
  if (listed === undefined) return undefined;
  for (const { pid } of holdersOf(inode, listed)) if (await hasOpen(pid, target)) return true;
  return false;
}

/**
 * Returns the processes that have locked an inode. Lines look like
 * `5: FLOCK ADVISORY WRITE 2140 fe:00:10871148 0 EOF`; lines of waiting processes have `->` after
 * the number.
 */
function holdersOf(inode: number, locks: string): { readonly pid: string }[] {
  return locks.split("\n").flatMap((line) => {
    const [, pid, found] = /^\d+: .* (-?\d+) \w+:\w+:(\d+) \d+ \w+$/.exec(line) ?? [];
    return pid !== undefined && Number(found) === inode ? [{ pid }] : [];
  });
}

/**
 * Whether a process has the file open, because other file systems use the same inode numbers. Also
 * true for a process that cannot be inspected.
 */
async function hasOpen(pid: string, target: string): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  const files = await readdir(folder).catch(() => undefined);
  if (files === undefined) return true;
  const targets = await Promise.all(files.map((file) => readlink(join(folder, file)).catch(() => "")));
  return targets.includes(target);
}
