/** The operations on files that change something. */
import { mkdir, open, rename, rm, stat, unlink } from "node:fs/promises";
import { syncFolder } from "../../repo/atomic_file.ts";
import { fileMode, folderMode } from "./layout.ts";

/** The file system as the store sees it: tests put faults here. */
export interface FlatfsFs {
  /** Writes a file that is not there yet; on the disk when it resolves. */
  write(path: string, bytes: Uint8Array): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Bytes of the file that went; undefined when there was none. */
  remove(path: string): Promise<number | undefined>;
  /** Its size; undefined when it was there. */
  makeFolder(path: string): Promise<number | undefined>;
  /** Resolves when names that came and went in a folder are on the disk. */
  syncFolder(path: string): Promise<void>;
}

const isCode = (error: unknown, code: string) => (error as NodeJS.ErrnoException).code === code;

export const diskFs: FlatfsFs = {
  async write(path, bytes) {
    const file = await open(path, "wx", fileMode);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    } finally {
      await file.close();
    }
  },
  rename,
  async remove(path) {
    try {
      const { size } = await stat(path);
      await unlink(path);
      return size;
    } catch (error) {
      if (isCode(error, "ENOENT")) return undefined;
      throw error;
    }
  },
  async makeFolder(path) {
    try {
      await mkdir(path, { mode: folderMode });
    } catch (error) {
      if (isCode(error, "EEXIST")) return undefined;
      throw error;
    }
    return (await stat(path)).size;
  },
  syncFolder,
};
