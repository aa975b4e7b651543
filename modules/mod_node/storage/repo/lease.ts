/**
 * The lease of a repo: a file that names its holder, and that the holder renews. It is the floor below the lock of the
 * system, which some file systems do not have, or not between hosts.
 */
import { readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { uniqueName, writeAtomically } from "./atomic_file.ts";
import { isHeld, isRenewed, type LeaseHolder, type LeaseTimes, ownLease, readLease } from "./lease_holder.ts";

export const leaseName = "repo.lease";
const claimPrefix = `${leaseName}-`;

/** Milliseconds between two looks at an earlier claim, and how long such a claim may block this one. */
const RETRY_MS = 5;
const MAX_WAIT_MS = 2000;
/** Milliseconds after which a claim of a process that cannot be asked for is a leftover: longer than any watch. */
const MAX_CLAIM_AGE_MS = 120_000;

export interface Lease {
  release(): Promise<void>;
}

export interface LeaseOptions {
  /** Of the lock of the system: see `KernelLock`. */
  readonly lock: string;
  readonly times: LeaseTimes;
  readonly onNotice: (sentence: string) => void;
  /** Called once when another process has taken the lease, because this one did not renew it in time. */
  readonly onLost: () => void;
}

/**
 * Takes the lease of a folder. Undefined when a living process has it.
 *
 * Every process first puts a claim beside the lease, then looks around. It gets the lease only if it sees no other
 * living claim and no living holder, by renaming its claim to the lease. Of two processes, one has looked after both
 * claims existed, so they cannot both see nobody; when claims meet, the first by name stays and the others withdraw.
 *
 * @throws NodeError for a folder that cannot be written to
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
    // Claims are read before the lease: a claim that becomes the lease meanwhile is seen in either place.
    const others = (await livingClaims(folder, own)).filter((other) => other !== claim);
    const found = await readLease(path);
    if (found !== undefined && !ended.has(found.holder.id)) {
      const held = await isHeld(found, own);
      if (held === true) return false;
      if (held === undefined) {
        const { patience } = options.times;
        options.onNotice(
          `${path} is of process ${found.holder.pid} on ${found.holder.host}, which cannot be asked from here: it is watched for ${patience / 1000} s`,
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
  let held = true;
  async function beat(): Promise<void> {
    if (!held) return;
    const found = await readLease(path);
    if (found?.holder.id === own.id) {
      const now = new Date();
      await utimes(path, now, now);
    } else if (found !== undefined) {
      held = false;
      clearInterval(timer);
      onLost();
    } else if (await isGone(path)) {
      await writeAtomically(path, JSON.stringify(own), 0o600);
    }
  }
  return {
    async release() {
      clearInterval(timer);
      const mine = held;
      held = false;
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
  return (await isHeld(found, own)) ?? Date.now() - found.renewed < MAX_CLAIM_AGE_MS;
}

/** Removes the claims of processes that died before they had the lease; gives the names of the removed files. */
export async function removeStaleClaims(folder: string): Promise<readonly string[]> {
  const living = new Set(await livingClaims(folder, await ownLease(folder, "")));
  const stale = (await claimsIn(folder)).filter((claim) => !living.has(claim));
  await Promise.all(stale.map((claim) => rm(claim, { force: true })));
  return stale.map((claim) => claim.slice(join(folder, "/").length)).sort();
}
