/** How whoever reads a hint can call the program. */
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/**
 * `modhost` where a shell finds it, else `npx modhost`, which works in a clone and where the package is installed. npm puts
 * `node_modules/.bin` into the path of what it starts, and of nothing else: that does not count.
 */
export function programName(path = process.env.PATH ?? "", exists: (file: string) => boolean = existsSync): string {
  const folders = path
    .split(delimiter)
    .filter((folder) => folder !== "" && !/[\\/]node_modules[\\/]\.bin$/.test(folder));
  return folders.some((folder) => exists(join(folder, "modhost"))) ? "modhost" : "npx modhost";
}
