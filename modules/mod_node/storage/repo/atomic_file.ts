/** Writes small files completely or not at all. */
import { randomBytes } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

export const uniqueName = (prefix: string): string => prefix + randomBytes(6).toString("hex");

const MAX_DRAFT_NAME = 32;

/**
 * Writes a draft next to the file and renames it. Durable when the promise resolves. Supports one
 * writer at a time.
 */
export async function writeAtomically(path: string, content: string | Uint8Array, mode: number): Promise<void> {
  const folder = dirname(path);
  // The name of the draft is limited, because the name of the file may already have the maximum
  // length.
  const draft = join(folder, `.${basename(path).slice(0, MAX_DRAFT_NAME)}.draft`);
  try {
    // A draft that a crash left behind may be read-only.
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

/** Makes the entries of a folder durable. */
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
