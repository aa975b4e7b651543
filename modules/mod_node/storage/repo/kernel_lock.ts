/**
 * A lock of the system on a file. It holds between processes, containers and, where the file system carries it, hosts,
 * and it ends with its process, however that ends.
 *
 * Node.js has no call for such locks, but SQLite, which is part of it, takes them: an exclusive transaction holds write
 * locks (fcntl) on bytes from 0x40000000 on. go-ipfs takes a lock of the same kind on the whole file, so that each of
 * the two programs is refused while the other runs. The transaction never writes: the file stays empty, as go-ipfs wants
 * it.
 *
 * The system drops a lock of this kind when its process closes any other descriptor of the file: nothing in this process
 * may open it.
 */
import { open, rm, stat } from "node:fs/promises";
import type { DatabaseSync } from "node:sqlite";
import { NodeError } from "../../util/errors.ts";

export interface KernelLock {
  /** Device and inode of the file; "" where the file system has no such locks, and nothing is held. */
  readonly place: string;
  /** Removes the file, and ends the lock. */
  release(): Promise<void>;
}

/** How often a holder may end between the look at its file and the lock. */
const MAX_TRIES = 100;
/** Primary result codes of SQLite. */
const BUSY = 5;
const IO_ERROR = 10;
const PROTOCOL = 15;

/** What is held is kept here: a database that nobody refers to would be closed. */
const held = new Set<DatabaseSync>();

/** Without the warning that SQLite is experimental in this Node.js. */
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
 * Locks a file, which is made when missing. Undefined while somebody else has the lock.
 *
 * @throws NodeError when the file cannot be written to
 */
export async function takeKernelLock(path: string): Promise<KernelLock | undefined> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    await makeEmpty(path);
    const before = await placeOf(path);
    const taken = before === undefined ? "moved" : lock(path);
    if (taken === "busy") return undefined;
    if (taken === "unsupported") return { place: "", release: () => rm(path, { force: true }) };
    if (taken === "moved") continue;
    // A holder that ends removes its file: then what is locked is no longer the file of that name.
    if (before !== undefined && before === (await placeOf(path)))
      return { place: before, release: releaseOf(path, taken) };
    unlock(taken);
  }
  return undefined;
}

/** Never opens a file that is there. */
async function makeEmpty(path: string): Promise<void> {
  try {
    await (await open(path, "wx", 0o600)).close();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

async function placeOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found && `${found.dev}:${found.ino}`;
}

function lock(path: string): DatabaseSync | "busy" | "unsupported" {
  const library = sqlite();
  if (library === undefined) return "unsupported";
  const database = new library.DatabaseSync(path);
  try {
    // The journal of a transaction that never writes.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    held.add(database);
    return database;
  } catch (error) {
    database.close();
    const { errcode = 0 } = error as { errcode?: number };
    const primary = errcode & 0xff;
    if (primary === BUSY) return "busy";
    if (primary === IO_ERROR || primary === PROTOCOL) return "unsupported";
    throw new NodeError(`${path} cannot be locked: ${(error as Error).message}`, { cause: error });
  }
}

function unlock(database: DatabaseSync): void {
  held.delete(database);
  database.close();
}

function releaseOf(path: string, database: DatabaseSync): () => Promise<void> {
  let released = false;
  return async () => {
    if (released) return;
    released = true;
    // Windows does not remove what is open. Elsewhere nobody may get between: see `takeKernelLock`.
    if (process.platform !== "win32") await rm(path, { force: true });
    unlock(database);
    if (process.platform === "win32") await rm(path, { force: true }).catch(() => undefined);
  };
}
