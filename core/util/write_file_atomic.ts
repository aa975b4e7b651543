import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Writes a file as a whole: whoever reads it sees the former content or the new one, also after the process or the machine
 * has ended in between. It has `mode` from its first byte on, and a link that stands at `path` is replaced, not followed. Of
 * several that write the same file, all of one process one after the other, the last one wins.
 */
export async function writeFileAtomic(path: string, content: string | Uint8Array, mode: number): Promise<void> {
  const draft = `${path}.${process.pid}.new`;
  // What a process with the same number has left behind may have another mode, or be a link.
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
