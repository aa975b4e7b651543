/**
 * Removes folders that a module may have filled. Folders in folders to a depth of thousands, or
 * hundreds of thousands of files, would block this thread for seconds or exhaust its descriptors.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmdirSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";

/** Removes the folder of a worker or sandbox: its sockets, and its temporary folder. */
export async function removeFolder(folder: string): Promise<void> {
  if (isRemovedAtOnce(folder)) return;
  const remover = spawn("rm", ["-rf", "--", folder], { stdio: "ignore" });
  const isDone = await once(remover, "exit").then(
    ([code]) => code === 0,
    () => false,
  );
  // Without that program, Node.js does it in its own threads.
  if (!isDone) await rm(folder, { recursive: true, force: true }).catch(() => undefined);
}

/** Removes a folder whose temporary folder is empty, as it mostly is. */
function isRemovedAtOnce(folder: string): boolean {
  try {
    for (const socket of ["http", "connections"]) rmSync(join(folder, socket), { force: true });
    for (const each of [join(folder, "tmp"), folder]) removeEmpty(each);
    return true;
  } catch {
    return false;
  }
}

/** @throws if something is in it */
function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
