/** The mount table of this machine. */

import { readFile } from "node:fs/promises";

/** Type of the mounts of a node; their source is the folder of its repo. */
export const mountType = "fuse.modhost";

/** Linux only. */
const mountTable = "/proc/self/mountinfo";

export interface Mounted {
  readonly folder: string;
  /** `major:minor`. */
  readonly device: string;
  readonly type: string;
  readonly source: string;
}

/** The lines of the table, in the order of mounting. */
function mountsIn(text: string): Mounted[] {
  return text.split("\n").flatMap((line) => {
    const fields = line.split(" ");
    const dash = fields.indexOf("-");
    const device = fields[2];
    const folder = fields[4];
    const type = fields[dash + 1];
    const source = fields[dash + 2];
    if (dash < 0 || device === undefined || folder === undefined || type === undefined) return [];
    return [{ device, folder: plain(folder), type: plain(type), source: plain(source ?? "") }];
  });
}

/** Spaces and backslashes are octal escapes. */
const plain = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));

/**
 * The mounts of a type, the last one first, so that they can be unmounted in this order. Empty
 * where the system does not tell.
 */
export async function mounted(type: string): Promise<Mounted[]> {
  const text = await readFile(mountTable, "utf8").catch(() => "");
  return mountsIn(text)
    .filter((found) => found.type === type)
    .reverse();
}
