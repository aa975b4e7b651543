/**
 * The lock of a repo, which only one process can have. It consists of a system lock on the file
 * `repo.lock`, which go-ipfs takes too, and of the lease in `repo.lease`, which names the holder.
 */
import { stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { failure, NodeError } from "../../util/errors.ts";
import { readPlainText } from "../plain_file.ts";
import { takeKernelLock } from "./kernel_lock.ts";
import { leaseName, takeLease } from "./lease.ts";
import { type LeaseTimes, leaseTimes, readLease, textOf } from "./lease_holder.ts";
import { isAlive, type ProcessName, surroundings } from "./process.ts";
import { isLockedElsewhere } from "./system_lock.ts";

const lockName = "repo.lock";
/** Files in a folder while it is locked. */
export const lockFiles: readonly string[] = [lockName, leaseName];

export interface RepoLock {
  release(): Promise<void>;
}

export interface LockOptions {
  /** Called with a sentence that the operator should read. */
  readonly onNotice?: ((sentence: string) => void) | undefined;
  /**
   * Called once when another process has taken over the folder. Nothing may be written there after
   * that.
   */
  readonly onLost?: (() => void) | undefined;
  readonly times?: LeaseTimes | undefined;
}

/**
 * Takes the lock of a folder. A lock whose process has ended is free.
 *
 * @throws NodeError REPO_LOCKED; NodeError for a folder that cannot be written
 */
export async function lockRepo(folder: string, options: LockOptions = {}): Promise<RepoLock> {
  const { onNotice = () => undefined, onLost = () => undefined, times = leaseTimes } = options;
  const path = join(folder, lockName);
  try {
    await emptyPreviousLock(path);
    // Detects locks of other kinds than the one taken here.
    if ((await isLockedElsewhere(path)) === true) throw await refusal(folder);
    const lock = await takeKernelLock(path);
    if (lock === undefined) throw await refusal(folder);
    try {
      if (lock.fileId === "") {
        onNotice(
          `${path} cannot be locked, because its file system has no locks: only ${leaseName} keeps other hosts out`,
        );
      }
      const lease = await takeLease(folder, { lock: lock.fileId, times, onNotice, onLost });
      if (lease === undefined) throw await refusal(folder);
      return {
        async release() {
          await lease.release();
          await lock.release();
        },
      };
    } catch (error) {
      await lock.release();
      throw error;
    }
  } catch (error) {
    if (NodeError.is(error)) throw error;
    throw failure(
      "REPO_NOT_WRITABLE",
      { reason: `the repo ${folder} cannot be written to: ${(error as Error).message}` },
      error,
    );
  }
}

/**
 * Returns the process that has locked a folder, for people: `process 12`. Undefined when the lock
 * does not name it, such as a lock of go-ipfs.
 */
export async function lockHolder(folder: string): Promise<string | undefined> {
  const found = await readLease(join(folder, leaseName));
  return found && textOf(found);
}

async function refusal(folder: string): Promise<NodeError> {
  const error = failure("REPO_LOCKED", { path: join(folder, lockName) });
  const found = await readLease(join(folder, leaseName));
  if (found === undefined || found.holder.space === (await surroundings()).space) return error;
  return new NodeError("REPO_LOCKED", `${error.message}: ${await textOf(found)}`);
}

/**
 * Empties the lock file. Earlier versions wrote the name of the holder into it, but go-ipfs only
 * accepts an empty file.
 *
 * @throws NodeError REPO_LOCKED when that holder is running
 */
async function emptyPreviousLock(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || found.size === 0) return;
  const holder = await readName(path);
  if (holder !== undefined && (await isAlive(holder))) throw failure("REPO_LOCKED", { path });
  await truncate(path);
}

/** Reads the name of a process; undefined when the file names none. */
async function readName(path: string): Promise<ProcessName | undefined> {
  try {
    const { pid, began } = JSON.parse(await readPlainText(path)) as Partial<ProcessName>;
    return Number.isInteger(pid) && typeof began === "string" ? { pid: pid as number, began } : undefined;
  } catch {
    return undefined;
  }
}
