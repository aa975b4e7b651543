/**
 * Restores a snapshot into a folder. Everything is written and checked in a folder next to the
 * target, which is then renamed into position.
 */
import { chmod, mkdir, open, readdir, rename, rm, statfs, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { absent, PRIVATE_FILE, PRIVATE_FOLDER, syncFolder } from "./disk.ts";
import { type Entry, leadsOut, type Named } from "./repository/format.ts";
import type { Repository } from "./repository/repository.ts";

export interface RestoreOptions {
  /** The target folder. It must be missing or empty. */
  readonly to: string;
  /** Renames a target folder that is not empty, and replaces it. */
  readonly force?: boolean;
  readonly signal: AbortSignal;
  readonly progress: (bytes: number) => void;
}

export interface Restored {
  /** Absolute path. */
  readonly to: string;
  readonly files: number;
  readonly bytes: number;
  /** The path to which `force` has renamed the old folder. */
  readonly previous?: string;
}

/**
 * Permission bits that are restored. The set-user-id bits are not, because such a program runs as
 * its owner whoever starts it.
 */
const PERMISSIONS = 0o777;

/** Marks a folder whose restore is incomplete. */
const mark = "restore-is-not-finished";

/**
 * @throws Error of the repository, when the target is not empty, or when the disk has too little
 * space
 */
export async function restore(
  repository: Repository,
  snapshot: Named,
  { force = false, signal, progress, ...options }: RestoreOptions,
): Promise<Restored> {
  const to = resolve(options.to);
  if (to === dirname(to)) throw new Error(`${to} cannot be replaced: name a folder in it`);
  const isTaken = (await namesIn(to))?.[0] !== undefined;
  if (isTaken && !force)
    throw new Error(`${to} is not empty: name a new folder, or use --force, which renames the existing folder`);
  const draft = await makeDraft(to);
  await requireRoom(dirname(draft), snapshot.bytes);
  const folders = new Map(snapshot.folders.map(({ name, to }) => [name, safe(to)]));
  const made = new Map<string, number>([[draft, PRIVATE_FOLDER]]);
  let files = 0;
  let bytes = 0;
  const write = async (entry: Entry) => {
    const folder = folders.get(entry.folder);
    if (folder === undefined) throw new Error(`The snapshot has no folder ${entry.folder} for ${entry.path}`);
    const path = join(draft, folder, safe(entry.path.replace(/\/$/, "")));
    if (entry.path.endsWith("/")) {
      await makeFolders(path, draft, made);
      made.set(path, entry.mode & PERMISSIONS);
      return;
    }
    await makeFolders(dirname(path), draft, made);
    const before = bytes;
    if (bytes + entry.size > snapshot.bytes)
      throw new Error(`The files of the snapshot have more than the ${snapshot.bytes} bytes that it states`);
    await writeEntry({ repository, entry, path, signal }, (done) => progress(before + done));
    files += 1;
    bytes += entry.size;
  };
  for await (const entry of repository.entries(snapshot, signal)) await write(entry);
  await rm(join(draft, mark));
  for (const [path, mode] of [...made].reverse()) {
    await syncFolder(path);
    await chmod(path, mode);
  }
  const previous = isTaken ? `${to}.before-${snapshot.id.slice(-8)}-${Date.now().toString(36)}` : undefined;
  if (previous !== undefined) await rename(to, previous).catch(busy(to));
  await rename(draft, to).catch(busy(to));
  await syncFolder(dirname(to));
  return { to, files, bytes, ...(previous === undefined ? {} : { previous }) };
}

/** A server's user can write to few folders, so the message names the folder that is needed. */
function refused(draft: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    if (error.code !== "EACCES" && error.code !== "EPERM" && error.code !== "EROFS") throw error;
    throw new Error(
      `Cannot create ${basename(draft)} in ${dirname(draft)} (${error.code}): a restore first writes next to its target, so choose a target in a folder that this user may write to`,
      { cause: error },
    );
  };
}

function busy(to: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    if (error.code !== "EBUSY") throw error;
    throw new Error(`${to} is a file system of its own, and cannot be replaced: name a folder in it`);
  };
}

/**
 * Makes an empty folder next to `to`, on the same file system. Removes the remains of an
 * interrupted restore.
 */
async function makeDraft(to: string): Promise<string> {
  const draft = `${to}.restoring`;
  const left = await namesIn(draft);
  if (left !== undefined && left.length > 0 && !left.includes(mark))
    throw new Error(`${draft} already exists, and does not come from a restore: move it away`);
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true, mode: PRIVATE_FOLDER }).catch(refused(draft));
  await writeFile(join(draft, mark), "");
  return draft;
}

/** Returns undefined for a missing folder. */
const namesIn = (folder: string): Promise<string[] | undefined> => readdir(folder).catch(absent);

async function requireRoom(folder: string, needed: number): Promise<void> {
  const { bavail, bsize, blocks } = await statfs(folder);
  if (blocks > 0 && bavail * bsize < needed)
    throw new Error(`${folder} has room for ${bavail * bsize} bytes, but the snapshot needs ${needed}`);
}

/** @throws Error for a path that leaves the folder */
function safe(path: string): string {
  if (leadsOut(path))
    throw new Error(`The snapshot has the path ${JSON.stringify(path)}, which leads out of the folder`);
  return path;
}

async function makeFolders(path: string, top: string, made: Map<string, number>): Promise<void> {
  if (made.has(path)) return;
  if (path !== top) await makeFolders(dirname(path), top, made);
  await mkdir(path, { mode: PRIVATE_FOLDER });
  made.set(path, PRIVATE_FOLDER);
}

interface Writing {
  readonly repository: Repository;
  readonly entry: Entry;
  readonly path: string;
  readonly signal: AbortSignal;
}

/** Resolves when the entry is durable. */
async function writeEntry(
  { repository, entry, path, signal }: Writing,
  progress: (bytes: number) => void,
): Promise<void> {
  const file = await open(path, "wx", PRIVATE_FILE);
  try {
    let size = 0;
    for (const piece of entry.pieces) {
      signal.throwIfAborted();
      const content = await repository.readPiece(piece, signal);
      size += content.length;
      if (size > entry.size) break;
      await file.writeFile(content);
      progress(size);
    }
    if (size !== entry.size) throw new Error(`${JSON.stringify(entry.path)} does not have its ${entry.size} bytes`);
    await file.chmod(entry.mode & PERMISSIONS);
    await file.sync();
  } finally {
    await file.close();
  }
}
