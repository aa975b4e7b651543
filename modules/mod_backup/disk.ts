/** Disk functions of this module: private files, and durable folder entries. */
import { constants } from "node:fs";
import { open, stat } from "node:fs/promises";

export const PRIVATE_FOLDER = 0o700;
export const PRIVATE_FILE = 0o600;

/**
 * Flags for reading. Opening a pipe that has replaced a file does not block until its other end is
 * opened.
 */
export const READ_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/**
 * Returns the content of a regular file. Throws for anything else, such as a pipe, without opening
 * it. Also throws for a file of more than `limit` bytes, whatever length its metadata reports.
 */
export async function contentOf(path: string, limit: number): Promise<Buffer> {
  if (!(await stat(path)).isFile()) throw new Error(`${path} is not a regular file`);
  await using file = await open(path, READ_FLAGS);
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of file.createReadStream({ end: limit, autoClose: false }) as AsyncIterable<Buffer>) {
    pieces.push(piece);
    length += piece.length;
  }
  if (length > limit) throw new Error(`${path} is not an object of a backup: it has more than ${limit} bytes`);
  return Buffer.concat(pieces);
}

/** Makes the entries of a folder durable. */
export async function syncFolder(path: string): Promise<void> {
  const handle = await open(path);
  await handle.sync().finally(() => handle.close());
}

/** Returns undefined for a missing file, and throws any other error. */
export function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
