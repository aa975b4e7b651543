/**
 * The lock of a repo, for one process at a time: a lock of the system on the file `repo.lock`, the same that go-ipfs
 * takes, and below it the lease in `repo.lease`, which names the holder.
 */
import { readFile, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { failure, NodeError } from "../../util/errors.ts";
import { takeKernelLock } from "./kernel_lock.ts";
import { leaseName, takeLease } from "./lease.ts";
import { type LeaseTimes, leaseTimes, readLease, textOf } from "./lease_holder.ts";
import { isAlive, type ProcessName, surroundings } from "./process.ts";
import { isLockedElsewhere } from "./system_lock.ts";

const lockName = "repo.lock";
/** What is in a folder while it is locked. */
export const lockFiles: readonly string[] = [lockName, leaseName];

export interface RepoLock {
  release(): Promise<void>;
}

export interface LockOptions {
  /** Called with a sentence that the operator should read. */
  readonly onNotice?: ((sentence: string) => void) | undefined;
  /** Called once when another process has taken the folder over: nothing may be written there any more. */
  readonly onLost?: (() => void) | undefined;
  readonly times?: LeaseTimes | undefined;
}

/**
 * Takes the lock of a folder; that of a process which has ended is free.
 *
 * @throws NodeError REPO_LOCKED; for a folder that cannot be written to
 */
export async function lockRepo(folder: string, options: LockOptions = {}): Promise<RepoLock> {
  const { onNotice = () => undefined, onLost = () => undefined, times = leaseTimes } = options;
  const path = join(folder, lockName);
  try {
    await emptyFormerLock(path);
    // Locks of other kinds than the one taken here.
    if ((await isLockedElsewhere(path)) === true) throw await refusal(folder);
    const lock = await takeKernelLock(path);
    if (lock === undefined) throw await refusal(folder);
    try {
      if (lock.place === "") {
        onNotice(`${path} cannot be locked, as its file system has no locks: only ${leaseName} keeps other hosts out`);
      }
      const lease = await takeLease(folder, { lock: lock.place, times, onNotice, onLost });
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
    throw new NodeError(`the repo ${folder} cannot be written to: ${(error as Error).message}`, { cause: error });
  }
}

/** Who holds a folder, for people: `process 12`. Undefined when the lock does not say, as that of go-ipfs. */
export async function lockHolder(folder: string): Promise<string | undefined> {
  const found = await readLease(join(folder, leaseName));
  return found && textOf(found);
}

async function refusal(folder: string): Promise<NodeError> {
  const error = failure("REPO_LOCKED", { path: join(folder, lockName) });
  const found = await readLease(join(folder, leaseName));
  if (found === undefined || found.holder.space === (await surroundings()).space) return error;
  return new NodeError(`${error.message}: ${await textOf(found)}`, { code: "REPO_LOCKED" });
}

/**
 * Earlier versions wrote the name of the holder into the file, which go-ipfs takes only when it is empty.
 *
 * @throws NodeError REPO_LOCKED when that holder runs
 */
async function emptyFormerLock(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || found.size === 0) return;
  const holder = await readName(path);
  if (holder !== undefined && (await isAlive(holder))) throw failure("REPO_LOCKED", { path });
  await truncate(path);
}

/** Undefined when it names nobody. */
async function readName(path: string): Promise<ProcessName | undefined> {
  try {
    const { pid, began } = JSON.parse(await readFile(path, "utf8")) as Partial<ProcessName>;
    return Number.isInteger(pid) && typeof began === "string" ? { pid: pid as number, began } : undefined;
  } catch {
    return undefined;
  }
}
