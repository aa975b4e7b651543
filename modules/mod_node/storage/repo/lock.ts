/**
 * One process at a time: the file `repo.lock`, which names its holder. go-ipfs holds an empty file of that name by a lock
 * of the system, and takes none that has something in it.
 */
import { readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { failure, NodeError } from "../../util/errors.ts";
import { uniqueName, writeAtomically } from "./atomic_file.ts";
import { isAlive, ownProcess, type ProcessName } from "./process.ts";
import { isLockedElsewhere } from "./system_lock.ts";

const lockName = "repo.lock";
const claimPrefix = `${lockName}-`;

/** Between two looks at a claim that came before the own one, and how long such a claim may stand; milliseconds. */
const RETRY_MS = 5;
const MAX_WAIT_MS = 2000;

export interface RepoLock {
  release(): Promise<void>;
}

/**
 * Takes the lock of a folder; one that a dead process has left counts for nothing.
 *
 * Whoever wants it first puts a claim of its own beside the lock, then looks around. It has the lock only if it saw no
 * other living claim and no living holder, and it takes it by moving its claim to the place of the lock. Of two
 * that want it, one has looked after both claims were there, so they cannot both see nobody; where claims meet, the
 * first by name stays and the others withdraw.
 *
 * @throws NodeError REPO_LOCKED; of the folder when it cannot be written to
 */
export async function lockRepo(folder: string): Promise<RepoLock> {
  const path = join(folder, lockName);
  const own = await ownProcess();
  const claim = uniqueName(`${claimPrefix}${own.pid}-`);
  const content = JSON.stringify(own);
  try {
    await writeAtomically(join(folder, claim), content, 0o600);
  } catch (error) {
    throw new NodeError(`the repo ${folder} cannot be written to: ${(error as Error).message}`, { cause: error });
  }
  try {
    if (!(await isFirst(folder, claim))) throw failure("REPO_LOCKED", { path });
    await rename(join(folder, claim), path);
  } catch (error) {
    await rm(join(folder, claim), { force: true });
    throw error;
  }
  let held = true;
  return {
    async release() {
      if (held) await rm(path, { force: true });
      held = false;
    },
  };
}

async function isFirst(folder: string, claim: string): Promise<boolean> {
  const deadline = performance.now() + MAX_WAIT_MS;
  for (;;) {
    // Claims before the lock: one that becomes the lock meanwhile is seen at either place.
    const others = (await livingClaims(folder)).filter((other) => other !== claim);
    const holder = await readName(join(folder, lockName));
    if (holder === undefined ? await isForeign(join(folder, lockName)) : await isAlive(holder)) return false;
    if (others.length === 0) return true;
    if (others.some((other) => other < claim) || performance.now() > deadline) return false;
    await delay(RETRY_MS);
  }
}

/** Whether go-ipfs has it. @throws NodeError where that cannot be told */
async function isForeign(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || found.size > 0) return false;
  const held = await isLockedElsewhere(path);
  if (held !== undefined) return held;
  throw new NodeError(`${path} is the lock of go-ipfs: end that program, or remove the file when it has ended already`);
}

async function claimsIn(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name.startsWith(claimPrefix));
}

async function livingClaims(folder: string): Promise<readonly string[]> {
  const claims = await claimsIn(folder);
  const living = await Promise.all(
    claims.map(async (claim) => {
      const name = await readName(join(folder, claim));
      return name !== undefined && (await isAlive(name));
    }),
  );
  return claims.filter((_, at) => living[at]);
}

/** Removes claims of processes that died before they had the lock; the names of what was removed. */
export async function removeStaleClaims(folder: string): Promise<readonly string[]> {
  const living = new Set(await livingClaims(folder));
  const stale = (await claimsIn(folder)).filter((claim) => !living.has(claim));
  await Promise.all(stale.map((claim) => rm(join(folder, claim), { force: true })));
  return stale.sort();
}

/** Id of the process that has a folder; undefined when the lock tells none, as that of go-ipfs. */
export async function lockHolder(folder: string): Promise<number | undefined> {
  return (await readName(join(folder, lockName)))?.pid;
}

/** Undefined when there is no file, or one that names nobody. */
async function readName(path: string): Promise<ProcessName | undefined> {
  try {
    const { pid, began } = JSON.parse(await readFile(path, "utf8")) as Partial<ProcessName>;
    return Number.isInteger(pid) && typeof began === "string" ? { pid: pid as number, began } : undefined;
  } catch {
    return undefined;
  }
}
