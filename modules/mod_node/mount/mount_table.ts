/** The mount table of this machine. */

import { readFile } from "node:fs/promises";

/** Type of the mounts of a node. Their source is the folder of its repo. */
export const mountType = "fuse.modhost";

/** Exists on Linux only. */
const mountTable = "/proc/self/mountinfo";

export interface MountEntry {
  readonly folder: string;
  /** Number of the device, as `major:minor`. */
  readonly device: string;
  readonly type: string;
  readonly source: string;
}

/** Parses the lines of the table, in the order of mounting. */
function mountsIn(text: string): MountEntry[] {
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

/** Decodes spaces and backslashes, which are octal escapes. */
const plain = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));

/**
 * Returns the mounts of a type, the last one first, so that they can be unmounted in this order.
 * Empty if the system has no such table.
 */
export async function mounted(type: string): Promise<MountEntry[]> {
  const text = await readFile(mountTable, "utf8").catch(() => "");
  return mountsIn(text)
    .filter((found) => found.type === type)
    .reverse();
}
