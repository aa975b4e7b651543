import { stat } from "node:fs/promises";

/** Differs when the file has been written, or another one is in its place; `size` is 0 for one that is missing, too. */
export interface FileState {
  readonly text: string;
  readonly size: number;
  /** When it was written last, milliseconds since 1970; 0 for one that is missing. */
  readonly written: number;
}

/** How a file is now, for whoever watches it; links are followed. */
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
