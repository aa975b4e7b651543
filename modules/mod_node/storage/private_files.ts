/** Files of a node are for nobody but their owner. */
import { chmod, lstat, readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** For folders and files that are made. */
export const PRIVATE_FOLDER = 0o700;
export const PRIVATE_FILE = 0o600;

const OTHERS = 0o007;
const GROUP_AND_OTHERS = 0o077;

/**
 * Takes a file, or a folder with everything in it, from everybody but the owner, where all users may read or write it. A
 * folder from which others are shut out already is left as it is: somebody may have given it to a group. What belongs to
 * another user stays, and a file system without permissions is no failure.
 */
export async function keepPrivate(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || (found.mode & OTHERS) === 0 || found.uid !== process.getuid?.()) return;
  await chmod(path, found.mode & 0o7777 & ~GROUP_AND_OTHERS).catch(() => undefined);
  if (!found.isDirectory()) return;
  for (const name of await readdir(path).catch(() => [])) {
    const inner = join(path, name);
    // A link leads to what is not of this folder.
    if (!(await lstat(inner).catch(() => undefined))?.isSymbolicLink()) await keepPrivate(inner);
  }
}
