/** The host's own part of a backup: files of the data folder, the config file and what it names. */
import type { Stats } from "node:fs";
import { type FileHandle, open, opendir, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import type { BackupFile } from "../../../core/types.ts";
import { below, type Layout } from "./layout.ts";

export interface HostFilesOptions {
  readonly layout: Layout;
  /** Absolute paths of files and folders. */
  readonly roots: readonly string[];
  /** Absolute paths that others have in their parts, or that are the backup itself. */
  readonly except: readonly string[];
  /** Hears of files that were changed while they were read, or could not be. */
  readonly warn: (text: string) => void;
}

const READ_BYTES = 1024 * 1024;

/** Each file is open from when it is given until the next one is asked for: it is read even if it goes meanwhile. */
export async function* hostFiles({ layout, roots, except, warn }: HostFilesOptions): AsyncGenerator<BackupFile> {
  const given = new Set<string>();
  const isLeftOut = (path: string) => except.some((each) => below(each, path) !== undefined);

  async function* filesAt(path: string): AsyncGenerator<BackupFile> {
    if (given.has(path) || isLeftOut(path)) return;
    given.add(path);
    const found = await stat(path).catch(gone);
    if (found === undefined) return;
    if (found.isDirectory()) yield* folderAt(path, found);
    else if (found.isFile()) yield* fileAt(path);
  }

  async function* folderAt(path: string, { mode }: Stats): AsyncGenerator<BackupFile> {
    const place = layout.placeOf(path);
    if (place.path !== "") yield { folder: place.folder, path: `${slashed(place.path)}/`, mode, read: nothing };
    const entries = await Array.fromAsync((await opendir(path).catch(gone)) ?? []);
    for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
      const inner = join(path, entry.name);
      if (entry.isSymbolicLink())
        warn(`${inner} is a symbolic link, and is left out: name its target in backup_include`);
      else yield* filesAt(inner);
    }
  }

  async function* fileAt(path: string): AsyncGenerator<BackupFile> {
    const file = await open(path).catch(gone);
    if (file === undefined) return;
    try {
      const found = await file.stat();
      const place = layout.placeOf(path);
      const state = `${found.size} ${found.mtimeMs} ${found.ino}`;
      yield {
        folder: place.folder,
        path: slashed(place.path),
        mode: found.mode,
        state,
        read: (from) => content(file, { from, to: found.size }),
      };
      const after = await file.stat();
      if (after.size < found.size || (after.size === found.size && after.mtimeMs !== found.mtimeMs))
        warn(`${path} was changed while it was read: the backup may have parts of both`);
    } finally {
      await file.close();
    }
  }

  for (const root of roots) yield* filesAt(root);
}

const slashed = (path: string): string => path.split(sep).join("/");

/** What goes while it is looked for is no part of the backup. */
function gone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

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
