/**
 * Opens regular files only. Opening a pipe, a socket or a device can block forever or have side
 * effects.
 */
import { constants, type PathLike, type Stats } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";

/**
 * Returns the error for a path that is neither a file, a folder nor a link, with the text that Kubo
 * uses.
 */
export const unknownKind = (shown: string, { mode }: Pick<Stats, "mode">): Error =>
  new Error(`unrecognized file type for ${shown}: ${modeText(mode)}`);

/**
 * Opens a file for reading; the caller closes it.
 *
 * @throws Error for anything but a regular file, and errors of the file system /
 */
export async function openPlainFile(path: PathLike, shown: string): Promise<FileHandle> {
  const before = await stat(path);
  if (!before.isFile()) throw unknownKind(shown, before);
  // A pipe may have replaced the file since; this flag keeps the call from blocking until the
  // pipe's other end is opened.
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  const now = await file.stat();
  if (now.isFile()) return file;
  await file.close();
  throw unknownKind(shown, now);
}

const kinds: ReadonlyMap<number, string> = new Map([
  [constants.S_IFDIR, "d"],
  [constants.S_IFLNK, "L"],
  [constants.S_IFBLK, "D"],
  [constants.S_IFCHR, "Dc"],
  [constants.S_IFIFO, "p"],
  [constants.S_IFSOCK, "S"],
]);

/** Returns kind and permissions as Go writes them: `prw-r--r--`. */
function modeText(mode: number): string {
  const permissions = [..."rwxrwxrwx"].map((letter, at) => ((mode & (0o400 >> at)) === 0 ? "-" : letter));
  return `${kinds.get(mode & constants.S_IFMT) ?? "-"}${permissions.join("")}`;
}
