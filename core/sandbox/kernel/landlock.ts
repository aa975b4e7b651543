/**
 * Landlock: the kernel refuses every file that no rule names. It needs no privilege. Its version is
 * a number, the ABI. ABI 1 (Linux 5.13) is enough: the filter of system calls refuses what it
 * lacks.
 */
import { closeSync, fstatSync, openSync } from "node:fs";
import type { Libc } from "./libc.ts";
import { LANDLOCK } from "./numbers.ts";

const EXECUTE = 1n << 0n;
const WRITE_FILE = 1n << 1n;
const READ_FILE = 1n << 2n;
const READ_FOLDER = 1n << 3n;
const REMOVE_FOLDER = 1n << 4n;
const REMOVE_FILE = 1n << 5n;
const MAKE_FOLDER = 1n << 7n;
const MAKE_FILE = 1n << 8n;
const MOVE = 1n << 13n;
const TRUNCATE = 1n << 14n;

/** Rights that can be given to a file. The others are rights in a folder. */
const OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE;

/**
 * Sockets, pipes, devices and symbolic links cannot be made anywhere. A program outside the sandbox
 * that later walks through the folder could be led astray by them.
 */
const rights = {
  read: READ_FILE | READ_FOLDER,
  write: READ_FILE | READ_FOLDER | WRITE_FILE | TRUNCATE | REMOVE_FILE | REMOVE_FOLDER | MAKE_FILE | MAKE_FOLDER | MOVE,
  run: READ_FILE | EXECUTE,
};

export type Right = keyof typeof rights;
export type FileRule = readonly [path: string, right: Right];

/** Number of file rights that an ABI knows. */
const countOfRights = (abi: number) => (abi >= 5 ? 16 : abi >= 3 ? 15 : abi === 2 ? 14 : 13);
/** The size of the kernel's structure that an ABI knows. */
const sizeOfAttributes = (abi: number) => (abi >= 6 ? 24 : abi >= 4 ? 16 : 8);

/** The first ABI that keeps signals and abstract sockets inside. */
export const SCOPES_SIGNALS = 6;

/** Linux opens a path without any right to its contents. */
const O_PATH = 0o10000000;

/** Returns the ABI of this kernel; 0 if it has no Landlock, or if Landlock is switched off. */
export function landlockAbi(libc: Libc): number {
  return Math.max(0, Number(libc.try(LANDLOCK.createRuleset, 0, 0, 1)));
}

/**
 * Restricts this thread, and with it the program that it becomes, to the rules. Paths that do not
 * exist are left out.
 * @returns descriptors to keep open. The kernel attaches a rule to an inode. The inodes of /proc,
 *   and some of overlay file systems, are made again once nobody uses them, and the rule would be
 *   lost. These descriptors cannot be read (O_PATH).
 */
export function restrictFiles(libc: Libc, abi: number, rules: readonly FileRule[]): readonly number[] {
  const known = (1n << BigInt(countOfRights(abi))) - 1n;
  const attributes = Buffer.alloc(24);
  attributes.writeBigUInt64LE(known, 0);
  // No TCP: neither bind nor connect.
  attributes.writeBigUInt64LE(3n, 8);
  // Abstract sockets and signals stay inside.
  attributes.writeBigUInt64LE(3n, 16);
  const create = [libc.address(attributes), sizeOfAttributes(abi), 0] as const;
  const ruleset = Number(libc.call("landlock_create_ruleset", LANDLOCK.createRuleset, ...create));
  const pinned: number[] = [];
  for (const [path, right] of rules) {
    const fd = opened(path);
    if (fd === undefined) continue;
    const isFolder = fstatSync(fd).isDirectory();
    const rule = Buffer.alloc(12);
    rule.writeBigUInt64LE(rights[right] & known & (isFolder ? known : OF_FILES), 0);
    rule.writeInt32LE(fd, 8);
    libc.call(`landlock_add_rule for ${path}`, LANDLOCK.addRule, ruleset, 1, libc.address(rule), 0);
    if (isFolder) closeSync(fd);
    else pinned.push(fd);
  }
  libc.call("landlock_restrict_self", LANDLOCK.restrictSelf, ruleset, 0);
  closeSync(ruleset);
  return pinned;
}

function opened(path: string): number | undefined {
  try {
    return openSync(path, O_PATH);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}
