/** The name of the program for hints. */
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/**
 * Returns `modhost` if a shell finds it, else `npx modhost`, which works in a source tree and where
 * the package is installed. npm adds `node_modules/.bin` to the PATH of the programs that it
 * starts; this folder is ignored.
 */
export function programName(path = process.env.PATH ?? "", exists: (file: string) => boolean = existsSync): string {
  const folders = path
    .split(delimiter)
    .filter((folder) => folder !== "" && !/[\\/]node_modules[\\/]\.bin$/.test(folder));
  return folders.some((folder) => exists(join(folder, "modhost"))) ? "modhost" : "npx modhost";
}
