/** Removes the folders that a killed host has left behind. */
import { lstat, readdir } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "./remove_folder.ts";

const name = /^modhost-(?:worker|sandbox)-/;

/** Milliseconds for which a folder stays in any case: its socket may not listen yet. */
const MIN_AGE_MS = 60_000;

let isDone = false;

/** Does so once in the life of this process. */
export function removeLeftFolders(): void {
  if (isDone) return;
  isDone = true;
  void removeAll(tmpdir()).catch(() => undefined);
}

async function removeAll(parent: string): Promise<void> {
  for (const entry of (await readdir(parent)).filter((one) => name.test(one))) {
    const folder = join(parent, entry);
    if (await isLeft(folder)) await removeFolder(folder);
  }
}

/** Whether nothing listens at the socket in a folder of this user. */
async function isLeft(folder: string): Promise<boolean> {
  try {
    const { mtimeMs, uid } = await lstat(folder);
    if (uid !== process.getuid?.() || Date.now() - mtimeMs < MIN_AGE_MS) return false;
    const socket = join(folder, "http");
    return (await lstat(socket)).isSocket() && (await isDeserted(socket));
  } catch {
    return false;
  }
}

function isDeserted(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(false);
    });
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
  });
}
