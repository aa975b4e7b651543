/** What a process and its children take, as Linux tells it. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

/**
 * Clock ticks a second, in which the kernel counts CPU time for programs: the same on all platforms
 * of Linux.
 */
const ticks = 100;

/** User and system CPU time of a process so far, of its children too, seconds. */
export function cpuSeconds(pid: number): number {
  return family(pid).reduce((sum, one) => sum + cpuOf(one), 0);
}

/** Most memory that a process and its children held since `forgetPeak`, bytes. */
export const peakBytes = (pid: number): number => memoryOf(pid, "VmHWM");

/** What they hold now, bytes. */
export const heldBytes = (pid: number): number => memoryOf(pid, "VmRSS");

/**
 * What of their memory stands in files, bytes: programs, libraries and mapped data, which the
 * system shares among processes and takes back when it wants to.
 */
export const fileBytes = (pid: number): number => memoryOf(pid, "RssFile");

/** What of their memory stands in no file, bytes. */
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
  // The name of the program, in brackets, may hold anything.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) / ticks;
}

const read = (pid: number, file: string): string => readFileSync(`/proc/${pid}/${file}`, "latin1");

function family(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) => childrenOf(`/proc/${pid}/task/${task}/children`));
  return [pid, ...children.flatMap(family)];
}

/** None of a thread that has ended. */
function childrenOf(file: string): number[] {
  try {
    return readFileSync(file, "latin1").split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
