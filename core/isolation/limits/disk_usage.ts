/** Measures what a sandboxed module has on disk. */
import { lstat, opendir, readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** Bytes that a file counts for at least: a million empty ones fill a disk as well. */
const MIN_FILE = 4096;

/** Bytes of a block in the result of `stat`. */
const BLOCK = 512;

/**
 * Returns the bytes that folders and everything below them take on disk. It ends early once there
 * are more than `enough`.
 */
export async function diskUse(folders: readonly string[], enough: number): Promise<number> {
  let bytes = 0;
  const waiting = [...folders];
  for (let folder = waiting.pop(); folder !== undefined && bytes <= enough; folder = waiting.pop()) {
    try {
      // Nothing else is measured while a folder is read, so that no folder is too large for memory.
      for await (const entry of await opendir(folder)) {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) waiting.push(path);
        const found = await lstat(path).catch(() => undefined);
        if (found !== undefined) bytes += Math.max(MIN_FILE, found.blocks * BLOCK);
        if (bytes > enough) break;
      }
    } catch {
      // It has been removed in the meantime, or does not exist yet.
    }
  }
  return bytes;
}

/** Returns the bytes of files that a process has open and that have no name any longer. */
export async function unnamedUse(pid: number): Promise<number> {
  const folder = `/proc/${pid}/fd`;
  let bytes = 0;
  for (const name of await readdir(folder).catch(() => [])) {
    const found = await stat(join(folder, name)).catch(() => undefined);
    if (found?.isFile() === true && found.nlink === 0) bytes += found.blocks * BLOCK;
  }
  return bytes;
}
