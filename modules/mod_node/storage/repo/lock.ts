/**
 * The lock of a repo, for one process at a time: the file `repo.lock`, which names its holder. go-ipfs locks an empty
 * file of that name with a system lock, and does not take one that has content.
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

/** Milliseconds between two looks at an earlier claim, and how long such a claim may block this one. */
const RETRY_MS = 5;
const MAX_WAIT_MS = 2000;

export interface RepoLock {
  release(): Promise<void>;
}

/**
 * Takes the lock of a folder; a lock of a dead process is ignored.
 *
 * Every process first puts a claim beside the lock, then looks around. It gets the lock only if it sees no other living
 * claim and no living holder, by renaming its claim to the lock. Of two processes, one has looked after both claims
 * existed, so they cannot both see nobody; when claims meet, the first by name stays and the others withdraw.
 *
 * @throws NodeError REPO_LOCKED; for a folder that cannot be written to
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
    // Claims are read before the lock: a claim that becomes the lock meanwhile is seen in either place.
    const others = (await livingClaims(folder)).filter((other) => other !== claim);
    const holder = await readName(join(folder, lockName));
    if (holder === undefined ? await isForeign(join(folder, lockName)) : await isAlive(holder)) return false;
    if (others.length === 0) return true;
    if (others.some((other) => other < claim) || performance.now() > deadline) return false;
    await delay(RETRY_MS);
  }
}

/** Whether go-ipfs holds the lock. @throws NodeError when that cannot be told */
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

/** Removes the claims of processes that died before they had the lock; gives the names of the removed files. */
export async function removeStaleClaims(folder: string): Promise<readonly string[]> {
  const living = new Set(await livingClaims(folder));
  const stale = (await claimsIn(folder)).filter((claim) => !living.has(claim));
  await Promise.all(stale.map((claim) => rm(join(folder, claim), { force: true })));
  return stale.sort();
}

/** The id of the process that holds a folder; undefined when the lock does not say, as that of go-ipfs. */
export async function lockHolder(folder: string): Promise<number | undefined> {
  return (await readName(join(folder, lockName)))?.pid;
}

/** Undefined when there is no file, or it names nobody. */
async function readName(path: string): Promise<ProcessName | undefined> {
  try {
    const { pid, began } = JSON.parse(await readFile(path, "utf8")) as Partial<ProcessName>;
    return Number.isInteger(pid) && typeof began === "string" ? { pid: pid as number, began } : undefined;
  } catch {
    return undefined;
  }
}
