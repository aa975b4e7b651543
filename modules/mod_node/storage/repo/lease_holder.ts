/** Who has written a lease or a claim to it, and whether that process still runs. */
import { randomBytes } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { uptime } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { isAlive, ownProcess, type ProcessName, type Surroundings, surroundings } from "./process.ts";

export interface LeaseHolder extends ProcessName, Surroundings {
  /** Different for each lease. */
  readonly id: string;
  /** Device and inode of the folder, so that a copy of the folder is told from the folder. */
  readonly folder: string;
  /** Device and inode of the file that this process has a lock of the system on; "" for none. */
  readonly lock: string;
}

/** Milliseconds. */
export interface LeaseTimes {
  /** Between two renewals. */
  readonly renewal: number;
  /** How long a lease of a process that cannot be asked for is watched: if it is not renewed, that process is gone. */
  readonly patience: number;
}

export const leaseTimes: LeaseTimes = { renewal: 5000, patience: 30_000 };

/** The clocks of two hosts do not differ by more. */
const MAX_SKEW_MS = 3_600_000;
/** Milliseconds between two looks at a lease. */
const LOOK_MS = 250;

/** This process, as the holder of that folder. */
export async function ownLease(folder: string, lock: string): Promise<LeaseHolder> {
  const { dev, ino } = await stat(folder, { bigint: true });
  const id = randomBytes(12).toString("hex");
  return { ...(await ownProcess()), ...(await surroundings()), id, folder: `${dev}:${ino}`, lock };
}

/** A file of a lease, as it was at one moment. */
export interface FoundLease {
  readonly holder: LeaseHolder;
  /** When it was renewed, by the clock of its holder: milliseconds since 1970. */
  readonly renewed: number;
}

/** Undefined when there is no file, or it names nobody. */
export async function readLease(path: string): Promise<FoundLease | undefined> {
  try {
    const holder = JSON.parse(await readFile(path, "utf8")) as Partial<Record<keyof LeaseHolder, unknown>>;
    const texts = ["began", "host", "machine", "boot", "space", "id", "folder", "lock"] as const;
    if (!Number.isInteger(holder.pid) || texts.some((name) => typeof holder[name] !== "string")) return undefined;
    return { holder: holder as unknown as LeaseHolder, renewed: (await stat(path)).mtimeMs };
  } catch {
    return undefined;
  }
}

/**
 * Whether its holder runs, as `own`, which has the lock of the system that it names, can tell at once. Undefined: only
 * time will tell.
 */
export async function isHeld({ holder, renewed }: FoundLease, own: LeaseHolder): Promise<boolean | undefined> {
  if (holder.space === own.space) {
    if (!(await isAlive(holder))) return false;
    return holder.folder === own.folder ? true : undefined;
  }
  // Two locks of one kernel on one file: the other has ended.
  if (own.boot !== "" && holder.boot === own.boot && own.lock !== "" && holder.lock === own.lock) return false;
  const isSameMachine = own.machine !== "" && holder.machine === own.machine && holder.host === own.host;
  if (isSameMachine && holder.boot !== own.boot && renewed < Date.now() - uptime() * 1000) return false;
  return Date.now() - renewed > MAX_SKEW_MS ? false : undefined;
}

/** Whether a lease is renewed while it is watched. */
export async function isRenewed(path: string, { holder, renewed }: FoundLease, patience: number): Promise<boolean> {
  const deadline = performance.now() + patience;
  while (performance.now() < deadline) {
    await delay(Math.min(LOOK_MS, patience / 4));
    const now = await readLease(path);
    if (now === undefined) return false;
    if (now.holder.id !== holder.id || now.renewed !== renewed) return true;
  }
  return false;
}

/** How the operator finds it. */
export async function textOf({ holder }: FoundLease): Promise<string> {
  const { host, space, boot } = await surroundings();
  if (holder.space === space) return `process ${holder.pid}`;
  const place = boot !== "" && holder.boot === boot ? "another container of this machine" : "another host";
  return `process ${holder.pid} of ${holder.host === host ? place : `${holder.host}, ${place}`}`;
}
