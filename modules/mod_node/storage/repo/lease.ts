/**
 * The lease of a repo: a file that names its holder and that the holder renews. It protects repos
 * on file systems without system locks, or without system locks between hosts.
 */
import { readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { uniqueName, writeAtomically } from "./atomic_file.ts";
import { isHolderAlive, isRenewed, type LeaseHolder, type LeaseTimes, ownLease, readLease } from "./lease_holder.ts";

export const leaseName = "repo.lease";
const claimPrefix = `${leaseName}-`;

/**
 * Milliseconds between checks of earlier claims, and maximum milliseconds for which they may delay
 * this one.
 */
const RETRY_MS = 5;
const MAX_WAIT_MS = 2000;
/** Milliseconds after which a claim of an unreachable process is stale; longer than any watch. */
const MAX_CLAIM_AGE_MS = 120_000;

export interface Lease {
  release(): Promise<void>;
}

export interface LeaseOptions {
  /** The file id of the system lock; see `KernelLock`. */
  readonly lock: string;
  readonly times: LeaseTimes;
  readonly onNotice: (sentence: string) => void;
  /**
   * Called once when another process has taken the lease, because this process did not renew it in
   * time.
   */
  readonly onLost: () => void;
}

/**
 * Takes the lease of a folder. Resolves with undefined when a living process has it.
 *
 * Each process first creates a claim next to the lease, and then reads the other claims and the
 * lease. It gets the lease, by renaming its claim, only if it sees no other living claim and no
 * living holder. At least one of two processes reads after both claims exist, so they cannot both
 * see nobody. When claims meet, the first by name stays and the others withdraw.
 *
 * @throws NodeError for a folder that cannot be written
 */
export async function takeLease(folder: string, options: LeaseOptions): Promise<Lease | undefined> {
  const path = join(folder, leaseName);
  const own = await ownLease(folder, options.lock);
  const claim = join(folder, uniqueName(`${claimPrefix}${own.pid}-`));
  const content = JSON.stringify(own);
  await writeAtomically(claim, content, 0o600);
  try {
    if (await isFirst(folder, claim, own, options)) {
      await rename(claim, path);
      return renewing(path, own, options);
    }
  } catch (error) {
    await rm(claim, { force: true });
    throw error;
  }
  await rm(claim, { force: true });
  return undefined;
}

async function isFirst(folder: string, claim: string, own: LeaseHolder, options: LeaseOptions): Promise<boolean> {
  const path = join(folder, leaseName);
  const ended = new Set<string>();
  let until = performance.now() + MAX_WAIT_MS;
  for (;;) {
    // Claims are read before the lease, so that a claim that becomes the lease in the meantime is
    // seen in one of the two.
    const others = (await livingClaims(folder, own)).filter((other) => other !== claim);
    const found = await readLease(path);
    if (found !== undefined && !ended.has(found.holder.id)) {
      const isOwn = await isHolderAlive(found, own);
      if (isOwn === true) return false;
      if (isOwn === undefined) {
        const { patience } = options.times;
        options.onNotice(
          `${path} belongs to process ${found.holder.pid} on ${found.holder.host}, which cannot be checked from here: watching it for ${patience / 1000} s`,
        );
        if (await isRenewed(path, found, patience)) return false;
        until = performance.now() + MAX_WAIT_MS;
      }
      ended.add(found.holder.id);
      continue;
    }
    if (others.length === 0) return true;
    if (others.some((other) => other < claim) || performance.now() > until) return false;
    await delay(RETRY_MS);
  }
}

function renewing(path: string, own: LeaseHolder, { times, onLost }: LeaseOptions): Lease {
  let beating: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    beating = beating.then(beat).catch(() => undefined);
  }, times.renewal);
  timer.unref();
  let isOwn = true;
  async function beat(): Promise<void> {
    if (!isOwn) return;
    const found = await readLease(path);
    if (found?.holder.id === own.id) {
      const now = new Date();
      await utimes(path, now, now);
    } else if (found !== undefined) {
      isOwn = false;
      clearInterval(timer);
      onLost();
    } else if (await isGone(path)) {
      await writeAtomically(path, JSON.stringify(own), 0o600);
    }
  }
  return {
    async release() {
      clearInterval(timer);
      const mine = isOwn;
      isOwn = false;
      await beating;
      if (mine && (await readLease(path))?.holder.id === own.id) await rm(path, { force: true });
    },
  };
}

const isGone = (path: string): Promise<boolean> =>
  stat(path).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === "ENOENT",
  );

async function claimsIn(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name.startsWith(claimPrefix)).map((name) => join(folder, name));
}

async function livingClaims(folder: string, own: LeaseHolder): Promise<readonly string[]> {
  const claims = await claimsIn(folder);
  const living = await Promise.all(claims.map((claim) => isLivingClaim(claim, own)));
  return claims.filter((_, at) => living[at]);
}

async function isLivingClaim(claim: string, own: LeaseHolder): Promise<boolean> {
  const found = await readLease(claim);
  if (found === undefined) return false;
  return (await isHolderAlive(found, own)) ?? Date.now() - found.renewed < MAX_CLAIM_AGE_MS;
}

/**
 * Removes the claims of processes that died before they got the lease. Resolves with the names of
 * the removed files.
 */
export async function removeStaleClaims(folder: string): Promise<readonly string[]> {
  const living = new Set(await livingClaims(folder, await ownLease(folder, "")));
  const stale = (await claimsIn(folder)).filter((claim) => !living.has(claim));
  await Promise.all(stale.map((claim) => rm(claim, { force: true })));
  return stale.map((claim) => claim.slice(join(folder, "/").length)).sort();
}
