/** Measures CPU time and memory of a process and its children, as Linux reports them. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

/**
 * Clock ticks per second, in which the kernel reports CPU time: the same on all platforms of Linux.
 */
const ticks = 100;

/** Returns the user and system CPU time of a process and its children in seconds. */
export function cpuSeconds(pid: number): number {
  return family(pid).reduce((sum, one) => sum + cpuOf(one), 0);
}

/** Returns the peak memory of a process and its children since `forgetPeak` in bytes. */
export const peakBytes = (pid: number): number => memoryOf(pid, "VmHWM");

/** Returns their current memory in bytes. */
export const residentBytes = (pid: number): number => memoryOf(pid, "VmRSS");

/**
 * Returns the bytes of their memory that are backed by files: programs, libraries and mapped data,
 * which the system shares among processes and reclaims when it needs memory.
 */
export const fileBytes = (pid: number): number => memoryOf(pid, "RssFile");

/** Returns the bytes of their memory that are not backed by files. */
export const anonymousBytes = (pid: number): number => memoryOf(pid, "RssAnon");

function memoryOf(pid: number, field: string): number {
  return family(pid).reduce((sum, one) => {
    const [, kibibytes = "0"] = new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(read(one, "status")) ?? [];
    return sum + Number(kibibytes) * 1024;
  }, 0);
}

export function forgetPeak(pid: number): void {
  for (const one of family(pid)) writeFileSync(`/proc/${one}/clear_refs`, "5");
}

function cpuOf(pid: number): number {
  const text = read(pid, "stat");
  // The name of the program, in brackets, may contain any character.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) / ticks;
}

const read = (pid: number, file: string): string => readFileSync(`/proc/${pid}/${file}`, "latin1");

function family(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) => childrenOf(`/proc/${pid}/task/${task}/children`));
  return [pid, ...children.flatMap(family)];
}

/** A thread that has ended has none. */
function childrenOf(file: string): number[] {
  try {
    return readFileSync(file, "latin1").split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
