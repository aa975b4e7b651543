/** Restricts the files of a node to their owner. */
import { chmod, lstat, readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** Modes of folders and files that the node creates. */
export const PRIVATE_FOLDER = 0o700;
export const PRIVATE_FILE = 0o600;

const OTHERS = 0o007;
const GROUP_AND_OTHERS = 0o077;

/**
 * Removes the permissions of everybody but the owner from a file, or from a folder with everything
 * in it, when all users may read or write it. A folder that is already closed to others is not
 * changed, because somebody may have given it to a group. Files of another user are not changed,
 * and a file system without permissions is not an error.
 */
export async function keepPrivate(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || (found.mode & OTHERS) === 0 || found.uid !== process.getuid?.()) return;
  await chmod(path, found.mode & 0o7777 & ~GROUP_AND_OTHERS).catch(() => undefined);
  if (!found.isDirectory()) return;
  for (const name of await readdir(path).catch(() => [])) {
    const inner = join(path, name);
    // A link may lead outside this folder.
    if (!(await lstat(inner).catch(() => undefined))?.isSymbolicLink()) await keepPrivate(inner);
  }
}
