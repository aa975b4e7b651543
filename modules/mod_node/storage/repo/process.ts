/**
 * Identifies processes by pid and, where the system provides it, by start time, because pids are
 * reused.
 */
import { readFile, readlink } from "node:fs/promises";
import { hostname } from "node:os";

export interface ProcessName {
  readonly pid: number;
  /**
   * Boot id of the machine and start time of the process; empty when the system does not provide
   * them.
   */
  readonly began: string;
}

/** The environment in which a pid is valid. */
export interface Surroundings {
  readonly host: string;
  /** Id of the installation of the system; empty when there is none, as in many containers. */
  readonly machine: string;
  /**
   * Id of this run of the kernel, which all containers of a machine share; empty when the system
   * does not provide it.
   */
  readonly boot: string;
  /** Boot id and namespace of pids; the host when the system provides neither. */
  readonly space: string;
}

let own: Promise<ProcessName> | undefined;
let around: Promise<Surroundings> | undefined;

/** Returns the name of this process. */
export function ownProcess(): Promise<ProcessName> {
  own ??= beginning(process.pid).then((began) => ({ pid: process.pid, began: began ?? "" }));
  return own;
}

export function surroundings(): Promise<Surroundings> {
  around ??= lookAround();
  return around;
}

async function lookAround(): Promise<Surroundings> {
  const nothing = () => "";
  const [boot, machine, namespace] = await Promise.all([
    bootId().catch(nothing),
    readFile("/etc/machine-id", "latin1").catch(nothing),
    readlink("/proc/self/ns/pid").catch(nothing),
  ]);
  const host = hostname();
  return { host, machine: machine.trim(), boot, space: boot === "" ? host : `${boot} ${namespace}` };
}

const bootId = async () => (await readFile("/proc/sys/kernel/random/boot_id", "latin1")).trim();

export async function isAlive({ pid, began }: ProcessName): Promise<boolean> {
  if (!exists(pid)) return false;
  const now = await beginning(pid);
  return now === undefined || began === "" || now === began;
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/**
 * Returns the start time of a process. Undefined when the system does not provide it. A process
 * that died but was not waited for yet counts as ended.
 */
async function beginning(pid: number): Promise<string | undefined> {
  try {
    const [boot, stat] = await Promise.all([bootId(), readFile(`/proc/${pid}/stat`, "latin1")]);
    // The name of the program, in parentheses, may contain any characters.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? "ended" : `${boot}-${fields[18]}`;
  } catch {
    return undefined;
  }
}
