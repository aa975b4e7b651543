/** Small files that are written completely or not at all. */
import { randomBytes } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

export const uniqueName = (prefix: string): string => prefix + randomBytes(6).toString("hex");

const MAX_DRAFT_NAME = 32;

/** Writes a file beside its place and renames it; durable when it resolves. One writer at a time. */
export async function writeAtomically(path: string, content: string | Uint8Array, mode: number): Promise<void> {
  const folder = dirname(path);
  // Not longer than the name itself, which may have the greatest possible length.
  const draft = join(folder, `.${basename(path).slice(0, MAX_DRAFT_NAME)}.draft`);
  try {
    // A leftover of a crash may be read-only.
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
