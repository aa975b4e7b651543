/** Identifies processes by pid and, where the system tells, by their start time, since pids are reused. */
import { readFile } from "node:fs/promises";

export interface ProcessName {
  readonly pid: number;
  /** Boot id of the machine and start time of the process; "" where the system does not tell. */
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

/** Undefined where the system does not tell; a process that died but was not waited for yet counts as ended. */
async function beginning(pid: number): Promise<string | undefined> {
  try {
    const [boot, stat] = await Promise.all([
      readFile("/proc/sys/kernel/random/boot_id", "latin1"),
      readFile(`/proc/${pid}/stat`, "latin1"),
    ]);
    // The name of the program, in parentheses, may contain anything.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? "ended" : `${boot.trim()}-${fields[18]}`;
  } catch {
    return undefined;
  }
}
