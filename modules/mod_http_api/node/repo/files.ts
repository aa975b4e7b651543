/** Small files that are there whole or not at all. */
import { randomBytes } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

export const freshName = (prefix: string): string => prefix + randomBytes(6).toString("hex");

/** Writes a file beside its place and moves it there; on the disk when it resolves. One writer at a time. */
export async function writeWhole(path: string, content: string, mode: number): Promise<void> {
  const folder = dirname(path);
  const draft = join(folder, `.${basename(path)}.draft`);
  try {
    await using(await open(draft, "w", mode), async (file) => {
      await file.writeFile(content);
      await file.sync();
    });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await using(await open(folder), (handle) => handle.sync());
}

async function using(handle: FileHandle, use: (handle: FileHandle) => Promise<void>): Promise<void> {
  try {
    await use(handle);
  } finally {
    await handle.close();
  }
}
