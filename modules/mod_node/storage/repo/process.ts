/** Processes by pid and, where the system tells, by the moment at which they began: pids come back. */
import { readFile } from "node:fs/promises";

export interface ProcessName {
  readonly pid: number;
  /** Boot of the machine and moment of the start; "" where the system does not tell. */
  readonly began: string;
}

let own: Promise<ProcessName> | undefined;

/** This process. */
export function ownProcess(): Promise<ProcessName> {
  own ??= beginning(process.pid).then((began) => ({ pid: process.pid, began: began ?? "" }));
  return own;
}

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

/** Undefined where the system does not tell; what died but was not waited for yet has no beginning. */
async function beginning(pid: number): Promise<string | undefined> {
  try {
    const [boot, stat] = await Promise.all([
      readFile("/proc/sys/kernel/random/boot_id", "latin1"),
      readFile(`/proc/${pid}/stat`, "latin1"),
    ]);
    // The name of the program, in parentheses, may hold anything.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? "ended" : `${boot.trim()}-${fields[18]}`;
  } catch {
    return undefined;
  }
}
