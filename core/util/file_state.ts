import { stat } from "node:fs/promises";

/**
 * The state of a file. `text` changes when the file is written or replaced; `size` is 0 for a
 * missing file, too.
 */
export interface FileState {
  readonly text: string;
  readonly size: number;
  /** When the file was last written, in milliseconds since 1970; 0 for a missing file. */
  readonly written: number;
}

/** Returns the current state of a file; links are followed. */
export async function fileState(file: string): Promise<FileState> {
  return await stat(file, { bigint: true }).then(
    ({ dev, ino, size, mtimeNs }) => ({
      text: `${dev} ${ino} ${size} ${mtimeNs}`,
      size: Number(size),
      written: Number(mtimeNs) / 1e6,
    }),
    () => ({ text: "missing", size: 0, written: 0 }),
  );
}
