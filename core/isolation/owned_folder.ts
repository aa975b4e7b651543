/** Gives the data folder of a module to the user that its process runs as. */
import { closeSync, constants, fchownSync, fstatSync, openSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

export interface FolderOwner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Gives a folder and everything in it to a user. A module gets another user when one of the layers
 * of its sandbox is added or missing, or when it is audited, and must still reach its files. The
 * folder itself comes last, so that the next start repeats a change that was interrupted. Only root
 * can change owners; for other users this does nothing.
 */
export function giveFolder(folder: string, owner: FolderOwner): void {
  if (process.getuid?.() === 0 && statSync(folder).uid !== owner.uid) giveTree(folder, owner);
}

function giveTree(folder: string, owner: FolderOwner): void {
  // Links are left alone: what they point to may belong to somebody else. The recursive mode of
  // readdir follows them.
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) giveTree(path, owner);
    else if (entry.isFile()) giveFile(path, owner);
  }
  giveFile(folder, owner);
}

function giveFile(path: string, { uid, gid }: FolderOwner): void {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (["ENOENT", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "")) return;
    throw error;
  }
  try {
    // A file with a second name may belong to somebody else under that name.
    const stats = fstatSync(file);
    if (stats.isDirectory() || stats.nlink === 1) fchownSync(file, uid, gid);
  } finally {
    closeSync(file);
  }
}
