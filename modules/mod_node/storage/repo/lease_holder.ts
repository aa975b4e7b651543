/** Identifies the process that wrote a lease or a claim, and checks whether it is still running. */
import { randomBytes } from "node:crypto";
import { stat } from "node:fs/promises";
import { uptime } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { readPlainText } from "../plain_file.ts";
import { isAlive, ownProcess, type ProcessName, type Surroundings, surroundings } from "./process.ts";

export interface LeaseHolder extends ProcessName, Surroundings {
  /** Different for each lease. */
  readonly id: string;
  /** Device and inode of the folder, which differ in a copy of the folder. */
  readonly folder: string;
  /** Device and inode of the file on which this process has a system lock; empty for none. */
  readonly lock: string;
}

/** Durations in milliseconds. */
export interface LeaseTimes {
  /** Interval of renewals. */
  readonly renewal: number;
  /**
   * How long the lease of an unreachable process is watched. If it is not renewed, the process is
   * considered dead.
   */
  readonly patience: number;
}

export const leaseTimes: LeaseTimes = { renewal: 5000, patience: 30_000 };

/** Maximum difference between the clocks of two hosts. */
const MAX_SKEW_MS = 3_600_000;
/** Milliseconds between two checks of a lease. */
const LOOK_MS = 250;

/** Describes this process as the holder of a folder. */
export async function ownLease(folder: string, lock: string): Promise<LeaseHolder> {
  const { dev, ino } = await stat(folder, { bigint: true });
  const id = randomBytes(12).toString("hex");
  return { ...(await ownProcess()), ...(await surroundings()), id, folder: `${dev}:${ino}`, lock };
}

/** The content of a lease file at one moment. */
export interface FoundLease {
  readonly holder: LeaseHolder;
  /** Time of the last renewal in milliseconds since 1970, by the clock of the holder. */
  readonly renewed: number;
}

/** Reads a lease; undefined when the file does not exist or names nobody. */
export async function readLease(path: string): Promise<FoundLease | undefined> {
  try {
    const holder = JSON.parse(await readPlainText(path)) as Partial<Record<keyof LeaseHolder, unknown>>;
    const texts = ["began", "host", "machine", "boot", "space", "id", "folder", "lock"] as const;
    if (!Number.isInteger(holder.pid) || texts.some((name) => typeof holder[name] !== "string")) return undefined;
    return { holder: holder as unknown as LeaseHolder, renewed: (await stat(path)).mtimeMs };
  } catch {
    return undefined;
  }
}

/**
 * Whether the holder of a lease is running, if this process can determine that immediately;
 * otherwise undefined. `own` must have the system lock that it names.
 */
export async function isHolderAlive({ holder, renewed }: FoundLease, own: LeaseHolder): Promise<boolean | undefined> {
  if (holder.space === own.space) {
    if (!(await isAlive(holder))) return false;
    return holder.folder === own.folder ? true : undefined;
  }
  // Two system locks on one file in one kernel: the other process has ended.
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

/** Describes the holder of a lease for the operator. */
export async function textOf({ holder }: FoundLease): Promise<string> {
  const { host, space, boot } = await surroundings();
  if (holder.space === space) return `process ${holder.pid}`;
  const location = boot !== "" && holder.boot === boot ? "another container of this machine" : "another host";
  return `process ${holder.pid} of ${holder.host === host ? location : `${holder.host}, ${location}`}`;
}
