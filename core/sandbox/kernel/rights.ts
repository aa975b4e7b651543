/** Limits, the user and the capabilities of the process. */
import { readFileSync } from "node:fs";
import type { SandboxLimits } from "../policy.ts";
import type { Libc } from "./libc.ts";
import { calls } from "./numbers.ts";

/** RLIMIT numbers of Linux. */
const limits = { cpuSeconds: 0, fileSize: 1, data: 2, processes: 6, openFiles: 7, addressSpace: 9 } as const;
const CORE = 4;

/** Sets the limits, soft and hard. No core file is ever written: it would contain secrets. */
export function setLimits(libc: Libc, wanted: SandboxLimits): void {
  const all = Object.entries(limits).flatMap(([name, number]) => {
    const value = wanted[name as keyof SandboxLimits];
    return value === undefined ? [] : [[number, value] as const];
  });
  for (const [number, value] of [...all, [CORE, 0] as const]) {
    const limit = Buffer.alloc(16);
    limit.writeBigUInt64LE(BigInt(value), 0);
    limit.writeBigUInt64LE(BigInt(value), 8);
    libc.call(`prlimit(${number})`, calls.prlimit64, 0, number, libc.address(limit), 0);
  }
}

const PR_CAPBSET_DROP = 24;
const PR_SET_SECUREBITS = 28;
const PR_CAP_AMBIENT = 47;
const PR_CAP_AMBIENT_CLEAR_ALL = 4;
/** SECBIT_NOROOT and its lock: the user id 0 stands for no capabilities. */
const NO_ROOT = 3;
const CAPABILITY_VERSION_3 = 0x20080522;
/** More capabilities than any kernel has. */
const MOST = 64;

/**
 * Gives up every capability for ever, and becomes another user if `user` is given. Only root can do
 * the first half.
 */
export function dropPrivileges(libc: Libc, user: number | undefined): void {
  if (process.getuid?.() === 0) {
    for (let capability = 0; capability < MOST; capability += 1) libc.try(calls.prctl, PR_CAPBSET_DROP, capability);
    libc.try(calls.prctl, PR_SET_SECUREBITS, NO_ROOT);
  }
  if (user !== undefined) {
    process.setgroups?.([]);
    process.setgid?.(user);
    process.setuid?.(user);
  }
  libc.try(calls.prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
  if (!hasCapabilities()) return;
  const header = Buffer.alloc(8);
  header.writeUInt32LE(CAPABILITY_VERSION_3, 0);
  libc.call("capset", calls.capset, libc.address(header), libc.address(Buffer.alloc(24)));
}

/**
 * Whether there are capabilities to give up. Units of systemd that leave none to their programs
 * often refuse `capset` as well (`SystemCallFilter=~@privileged`).
 */
function hasCapabilities(): boolean {
  return /^Cap(?:Inh|Prm|Eff):\s*0*[1-9a-f]/m.test(readFileSync("/proc/self/status", "latin1"));
}

const PR_SET_PDEATHSIG = 1;
const SIGKILL = 9;

/**
 * The process ends with the thread that started it. `parent` is the id of the process that it
 * expects, unless it cannot see it.
 */
export function endWithParent(libc: Libc, parent: number | undefined): void {
  libc.call("prctl(PR_SET_PDEATHSIG)", calls.prctl, PR_SET_PDEATHSIG, SIGKILL);
  if (parent !== undefined && process.ppid !== parent) throw new Error("the server has ended");
}
