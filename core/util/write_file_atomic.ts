import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Replaces a file completely: readers see either the old or the new content, even if the process or
 * the machine ends in between. The file has `mode` from its first byte on, and a link at `path` is
 * replaced, not followed. Concurrent writes of one process to the same file must be serialized; the
 * last one wins.
 */
export async function writeFileAtomic(path: string, content: string | Uint8Array, mode: number): Promise<void> {
  const draft = `${path}.${process.pid}.new`;
  // A file left by an earlier process with the same id may have another mode, or be a link.
  await rm(draft, { force: true });
  try {
    const file = await open(draft, "wx", mode);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  const folder = await open(dirname(path), "r");
  await folder.sync().finally(() => folder.close());
}
