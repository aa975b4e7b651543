/** The file operations that a flatfs needs for changes. */
import { mkdir, open, rename, rm, stat, unlink } from "node:fs/promises";
import { syncFolder } from "../../repo/atomic_file.ts";
import { fileMode, folderMode } from "./layout.ts";

/** The file system under the store; tests inject faults here. */
export interface FlatfsFs {
  /** Writes a new file; durable when the promise resolves. */
  write(path: string, bytes: Uint8Array): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Removes a file. Resolves with its size; undefined when it did not exist. */
  remove(path: string): Promise<number | undefined>;
  /** Creates a folder. Resolves with its size; undefined when it already existed. */
  makeFolder(path: string): Promise<number | undefined>;
  /** Resolves when the entries of a folder are durable. */
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
