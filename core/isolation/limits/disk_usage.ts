/** Measures what a sandboxed module has on disk. */
import type { Dir } from "node:fs";
import { chmod, lstat, opendir, readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** Bytes that a file counts for at least: a million empty ones fill a disk as well. */
const MIN_FILE = 4096;

/** Bytes of a block in the result of `stat`. */
const BLOCK = 512;

const OWNER_ALL = 0o700;
const TOO_DEEP = "ENAMETOOLONG";

/**
 * Returns the bytes that folders and everything below them take on disk. It ends early once there
 * are more than `enough`.
 * @throws {Error} ENAMETOOLONG if something is too deep to be found: a module can move folders into
 * each other beyond the longest path
 */
export async function diskUse(folders: readonly string[], enough: number): Promise<number> {
  let bytes = 0;
  const waiting = [...folders];
  for (let folder = waiting.pop(); folder !== undefined && bytes <= enough; folder = waiting.pop()) {
    try {
      // Nothing else is measured while a folder is read, so that no folder is too large for memory.
      for await (const entry of await openFolder(folder)) {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) waiting.push(path);
        const found = await lstat(path).catch(ignoreUnlessTooDeep);
        if (found !== undefined) bytes += Math.max(MIN_FILE, found.blocks * BLOCK);
        if (bytes > enough) break;
      }
    } catch (error) {
      // Otherwise it has been removed in the meantime, or does not exist yet.
      ignoreUnlessTooDeep(error);
    }
  }
  return bytes;
}

/** Opens a folder, also one that the module has made without the right to list it. */
async function openFolder(folder: string): Promise<Dir> {
  try {
    return await opendir(folder);
  } catch (error) {
    if (codeOf(error) !== "EACCES") throw error;
    // It fails for a folder of another user, which an operator may have put there.
    await chmod(folder, OWNER_ALL);
    return opendir(folder);
  }
}

function ignoreUnlessTooDeep(error: unknown): undefined {
  if (codeOf(error) === TOO_DEEP) throw error;
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code;

/** Returns the bytes of files that processes have open and that have no name any longer. */
export async function unnamedUse(pids: readonly number[]): Promise<number> {
  const sizes = new Map<string, number>();
  for (const pid of pids) {
    const folder = `/proc/${pid}/fd`;
    for (const name of await readdir(folder).catch(() => [])) {
      const found = await stat(join(folder, name)).catch(() => undefined);
      // Several of the processes may have the same file.
      if (found?.isFile() === true && found.nlink === 0) sizes.set(`${found.dev} ${found.ino}`, found.blocks * BLOCK);
    }
  }
  return sizes.values().reduce((sum, bytes) => sum + bytes, 0);
}
