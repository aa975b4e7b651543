/**
 * A system lock on a file. It works between processes, containers and, where the file system
 * supports it, hosts. It ends with its process, however that ends.
 *
 * Node.js has no API for such locks, but SQLite, which is part of it, uses them: an exclusive
 * transaction takes write locks (fcntl) on bytes from 0x40000000 on. go-ipfs takes the same kind of
 * lock on the whole file, so each of the two programs is refused while the other one runs. The
 * transaction never writes, so the file stays empty, as go-ipfs requires.
 *
 * The system drops such a lock when its process closes any other descriptor of the file, so nothing
 * else in this process may open it.
 */
import { open, rm, stat } from "node:fs/promises";
import type { DatabaseSync } from "node:sqlite";
import { failure } from "../../util/errors.ts";

export interface KernelLock {
  /**
   * Device and inode of the file. Empty when the file system has no such locks, and no lock was
   * taken.
   */
  readonly fileId: string;
  /** Removes the file and releases the lock. */
  release(): Promise<void>;
}

/** Maximum number of times that a holder may end between the check of its file and the lock. */
const MAX_TRIES = 100;
/** Primary result codes of SQLite. */
const BUSY = 5;
const IO_ERROR = 10;
const PROTOCOL = 15;

/**
 * Open databases with locks. Without a reference, a database would be garbage-collected and closed.
 */
const openDatabases = new Set<DatabaseSync>();

/** Loads SQLite without the warning that it is experimental in this version of Node.js. */
function sqlite(): typeof import("node:sqlite") | undefined {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return process.getBuiltinModule("node:sqlite");
  } finally {
    process.emitWarning = emitWarning;
  }
}

/**
 * Locks a file, which is created when missing. Resolves with undefined while somebody else has the
 * lock.
 *
 * @throws NodeError when the file cannot be written
 */
export async function takeKernelLock(path: string): Promise<KernelLock | undefined> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    await makeEmpty(path);
    const before = await fileIdOf(path);
    const taken = before === undefined ? "moved" : lock(path);
    if (taken === "busy") return undefined;
    if (taken === "unsupported") return { fileId: "", release: () => rm(path, { force: true }) };
    if (taken === "moved") continue;
    // A holder that ends removes its file. The locked file is then no longer the file of that name.
    if (before !== undefined && before === (await fileIdOf(path)))
      return { fileId: before, release: releaseOf(path, taken) };
    unlock(taken);
  }
  return undefined;
}

/** Creates an empty file; never opens an existing one. */
async function makeEmpty(path: string): Promise<void> {
  try {
    await (await open(path, "wx", 0o600)).close();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

async function fileIdOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found && `${found.dev}:${found.ino}`;
}

function lock(path: string): DatabaseSync | "busy" | "unsupported" {
  const library = sqlite();
  if (library === undefined) return "unsupported";
  const database = new library.DatabaseSync(path);
  try {
    // The transaction never writes, so its journal is in memory.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    openDatabases.add(database);
    return database;
  } catch (error) {
    database.close();
    const { errcode = 0 } = error as { errcode?: number };
    const primary = errcode & 0xff;
    if (primary === BUSY) return "busy";
    if (primary === IO_ERROR || primary === PROTOCOL) return "unsupported";
    throw failure("REPO_NOT_WRITABLE", { reason: `${path} cannot be locked: ${(error as Error).message}` }, error);
  }
}

function unlock(database: DatabaseSync): void {
  openDatabases.delete(database);
  database.close();
}

function releaseOf(path: string, database: DatabaseSync): () => Promise<void> {
  let released = false;
  return async () => {
    if (released) return;
    released = true;
    // Windows cannot remove open files. On other systems, the file is removed first, so that nobody
    // can lock it in between; see `takeKernelLock`.
    if (process.platform !== "win32") await rm(path, { force: true });
    unlock(database);
    if (process.platform === "win32") await rm(path, { force: true }).catch(() => undefined);
  };
}
