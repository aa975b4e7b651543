/**
 * Reads from /proc how much memory and processor time processes use. A module can lie about its own
 * use, but not there.
 */
import { readdirSync, readFileSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";

/** The unit of processor times in /proc: Linux reports them in hundredths of a second. */
const TICKS_PER_SECOND = 100;

/** Processes that are read before other work of the host gets its turn. */
const READ_AT_ONCE = 32;

export interface ProcessUse {
  readonly pid: number;
  /** Bytes that belong to it alone, in memory or swapped out. Mapped files do not count. */
  readonly memory: number;
  /** Seconds of processor time. */
  readonly cpu: number;
  /** Seconds that its ended children have used, and their ended children. */
  readonly childCpu: number;
  /** The process group. */
  readonly group: number;
}

/** Returns what a process uses; undefined if it has ended. */
export function useOf(pid: number): ProcessUse | undefined {
  try {
    const times = statOf(pid);
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    const kilobytes = ["RssAnon", "RssShmem", "VmSwap"].map((field) => {
      const at = status.indexOf(`\n${field}:`);
      return at < 0 ? 0 : Number.parseInt(status.slice(at + field.length + 2), 10);
    });
    return { pid, ...times, memory: 1024 * kilobytes.reduce((sum, each) => sum + each, 0) };
  } catch {
    return undefined;
  }
}

/** Returns the ids of all other processes of a group. It reads the group of every process. */
export async function othersOfGroup(group: number, pid: number): Promise<readonly number[]> {
  const found: number[] = [];
  let read = 0;
  for (const name of readdirSync("/proc")) {
    const other = Number(name);
    if (!Number.isInteger(other) || other === pid) continue;
    if (++read % READ_AT_ONCE === 0) await nextTurn();
    try {
      if (statOf(other).group === group) found.push(other);
    } catch {
      // It has ended in the meantime.
    }
  }
  return found;
}

/** @throws if the process has ended */
function statOf(pid: number): Pick<ProcessUse, "group" | "cpu" | "childCpu"> {
  const text = readFileSync(`/proc/${pid}/stat`, "latin1");
  // The name before the parenthesis may contain spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  // Fields 14 to 17 of proc(5): user and system time, and those of children that have ended.
  const seconds = (at: number) => (Number(fields[at]) + Number(fields[at + 1])) / TICKS_PER_SECOND;
  return { group: Number(fields[2]), cpu: seconds(11), childCpu: seconds(13) };
}
