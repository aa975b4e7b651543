/** Small files that are there whole or not at all. */
import { randomBytes } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

export const uniqueName = (prefix: string): string => prefix + randomBytes(6).toString("hex");

const MAX_DRAFT_NAME = 32;

/** Writes a file beside its place and moves it there; on the disk when it resolves. One writer at a time. */
export async function writeAtomically(path: string, content: string | Uint8Array, mode: number): Promise<void> {
  const folder = dirname(path);
  // No longer than the name itself: that may be as long as a name can be.
  const draft = join(folder, `.${basename(path).slice(0, MAX_DRAFT_NAME)}.draft`);
  try {
    // What a crash has left may be read-only.
    await rm(draft, { force: true });
    await using(await open(draft, "w", mode), async (file) => {
      await file.writeFile(content);
      await file.sync();
    });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await syncFolder(folder);
}

/** Makes durable which files there are in a folder. */
export async function syncFolder(folder: string): Promise<void> {
  await using(await open(folder), (handle) => handle.sync());
}

async function using(handle: FileHandle, use: (handle: FileHandle) => Promise<void>): Promise<void> {
  try {
    await use(handle);
  } finally {
    await handle.close();
  }
}
