/**
 * Reads regular files in folders that others can write to. Opening a pipe would block, and a device
 * may have side effects.
 */
import { constants, type PathLike } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { failure } from "../util/errors.ts";

const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/**
 * Opens a file; the caller closes it.
 * @throws NodeError for a pipe, a socket or a device; errors of the file system
 */
export async function openPlainFile(path: PathLike): Promise<FileHandle> {
  const refuse = () => failure("NOT_A_REGULAR_FILE", { path: String(path) });
  const before = await stat(path);
  // Folders are allowed: reading one fails with the error of the system.
  if (!before.isFile() && !before.isDirectory()) throw refuse();
  const file = await open(path, flags);
  const now = await file.stat();
  if (now.isFile() || now.isDirectory()) return file;
  await file.close();
  throw refuse();
}

/** Returns the text of a small file. */
export const readPlainText = async (path: PathLike): Promise<string> => (await readPlainFile(path)).toString("utf8");

/** Returns the content of a small file. */
export async function readPlainFile(path: PathLike): Promise<Buffer> {
  await using file = await openPlainFile(path);
  return await file.readFile();
}
