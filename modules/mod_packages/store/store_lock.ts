/**
 * Allows one process at a time to change the store and the lock file. A file names the process,
 * which touches it regularly as a sign of life.
 */
import { randomBytes } from "node:crypto";
import { readFileSync, utimesSync } from "node:fs";
import { link, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { PackageError } from "../errors.ts";

const BEAT_MS = 10_000;
/** Milliseconds without a sign of life after which the lock of another machine is abandoned. */
const MAX_SILENCE_MS = 60_000;

/** Ids of the locks of this process. An earlier process may have had the same process number. */
const own = new Set<string>();

interface LockOwner {
  readonly id: string;
  readonly machine: string;
  readonly pid: number;
}

/**
 * Runs work with the lock at `path`, whose folder exists.
 * @throws {PackageError} STORE_BUSY
 */
export async function withStoreLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const id = randomBytes(9).toString("hex");
  await take(path, { id, machine: hostname(), pid: process.pid });
  own.add(id);
  const beat = setInterval(() => touch(path, id), BEAT_MS).unref();
  try {
    return await work();
  } finally {
    clearInterval(beat);
    own.delete(id);
    if ((await ownerOf(path))?.id === id) await rm(path, { force: true });
  }
}

async function take(path: string, owner: LockOwner): Promise<void> {
  // Each attempt either takes the lock, meets a live owner, or removes an abandoned lock.
  for (;;) {
    if (await create(path, owner)) return;
    const current = await ownerOf(path);
    if (current !== undefined && (await isAlive(path, current))) {
      throw new PackageError("STORE_BUSY", { path, pid: current.pid, machine: current.machine });
    }
    await removeAbandoned(path, current);
  }
}

/** The lock appears with its content, so that no other process reads a part of it. */
async function create(path: string, owner: LockOwner): Promise<boolean> {
  const draft = `${path}.${owner.id}`;
  await writeFile(draft, JSON.stringify(owner), { flag: "wx", mode: 0o600 });
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/**
 * Another process may do the same at this moment, and then take the lock: it gets that one back.
 */
async function removeAbandoned(path: string, abandoned: LockOwner | undefined): Promise<void> {
  const aside = `${path}.${randomBytes(9).toString("hex")}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  if ((await ownerOf(aside))?.id !== abandoned?.id) await link(aside, path).catch(() => undefined);
  await rm(aside, { force: true });
}

async function ownerOf(path: string): Promise<LockOwner | undefined> {
  try {
    const owner = JSON.parse(await readFile(path, "utf8")) as LockOwner | null;
    return typeof owner?.id === "string" ? owner : undefined;
  } catch {
    return undefined;
  }
}

async function isAlive(path: string, { id, machine, pid }: LockOwner): Promise<boolean> {
  if (machine === hostname() && (pid === process.pid ? !own.has(id) : !isRunning(pid))) return false;
  const found = await stat(path).catch(() => undefined);
  return found === undefined || Date.now() - found.mtimeMs < MAX_SILENCE_MS;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function touch(path: string, id: string): void {
  try {
    const now = new Date();
    if ((JSON.parse(readFileSync(path, "utf8")) as LockOwner).id === id) utimesSync(path, now, now);
  } catch {
    // The store was removed, which the work itself will notice.
  }
}
