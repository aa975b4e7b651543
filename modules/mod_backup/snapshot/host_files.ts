/**
 * The host's own part of a backup: the files of the data folder, the config file, and the files
 * that it names.
 */
import type { Stats } from "node:fs";
import { type FileHandle, open, opendir, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import type { BackupFile } from "../../../core/types.ts";
import { absent, READ_FLAGS } from "../disk.ts";
import { below, type Layout } from "./layout.ts";

export interface HostFilesOptions {
  readonly layout: Layout;
  /** Absolute paths of files and folders. */
  readonly roots: readonly string[];
  /** Absolute paths to skip: those that other parts contain, and the backup itself. */
  readonly except: readonly string[];
  /** Receives a warning for each file that could not be read or changed during the read. */
  readonly warn: (text: string) => void;
}

const READ_BYTES = 1024 * 1024;

interface Found {
  readonly path: string;
  readonly stats: Stats;
}

/**
 * Yields the files. A file that disappears during the search is skipped. Each yielded file stays
 * open until the next one is requested, so it can be read even if it is removed meanwhile.
 */
export async function* hostFiles(options: HostFilesOptions): AsyncGenerator<BackupFile> {
  const { layout, warn } = options;
  for await (const { path, stats } of found(options)) {
    const { folder, path: inside } = layout.locationOf(path);
    if (!stats.isDirectory()) yield* fileAt(path, { folder, path: slashed(inside) }, warn);
    else if (inside !== "") yield { folder, path: `${slashed(inside)}/`, mode: stats.mode, read: nothing };
  }
}

/** Returns the total size of the files that `hostFiles` would yield now. */
export async function hostBytes(options: Omit<HostFilesOptions, "warn" | "layout">): Promise<number> {
  let bytes = 0;
  for await (const { stats } of found({ ...options, warn: () => {} })) bytes += stats.isFile() ? stats.size : 0;
  return bytes;
}

/** Yields all files and folders, each once. */
async function* found({ roots, except, warn }: Omit<HostFilesOptions, "layout">): AsyncGenerator<Found> {
  const given = new Set<string>();
  const isLeftOut = (path: string) => except.some((each) => below(each, path) !== undefined);

  async function* at(path: string): AsyncGenerator<Found> {
    if (given.has(path) || isLeftOut(path)) return;
    given.add(path);
    const stats = await stat(path).catch(absent);
    if (stats?.isDirectory() !== true) {
      if (stats?.isFile() === true) yield { path, stats };
      return;
    }
    yield { path, stats };
    const entries = await Array.fromAsync((await opendir(path).catch(absent)) ?? []);
    for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
      const inner = join(path, entry.name);
      if (!entry.isSymbolicLink()) yield* at(inner);
      else warn(`${inner} is a symbolic link, and is left out: name its target in backup_include`);
    }
  }

  for (const root of roots) yield* at(root);
}

async function* fileAt(
  path: string,
  location: Pick<BackupFile, "folder" | "path">,
  warn: HostFilesOptions["warn"],
): AsyncGenerator<BackupFile> {
  const file = await open(path, READ_FLAGS).catch(absent);
  if (file === undefined) return;
  try {
    const before = await file.stat();
    if (!before.isFile()) return;
    const { size, mode, mtimeMs, ino } = before;
    yield { ...location, mode, state: `${size} ${mtimeMs} ${ino}`, read: (from) => content(file, { from, to: size }) };
    const after = await file.stat();
    // A file that only grew is complete up to its earlier length.
    if (after.size < size || (after.size === size && after.mtimeMs !== mtimeMs))
      warn(`${path} was changed while it was read: the backup may have parts of both versions`);
  } finally {
    await file.close();
  }
}

const slashed = (path: string): string => path.split(sep).join("/");

async function* nothing(): AsyncGenerator<Uint8Array> {}

async function* content(file: FileHandle, { from, to }: { from: number; to: number }): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.alloc(Math.min(READ_BYTES, Math.max(0, to - from)));
  for (let at = from; at < to; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, to - at), at);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
  }
}
