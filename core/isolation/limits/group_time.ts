/** Counts the processor time of a changing group of processes. */
import type { ProcessUse } from "./process_usage.ts";

type Times = Pick<ProcessUse, "pid" | "cpu" | "childCpu">;

export class GroupTime {
  #known = new Map<number, Times>();
  /** Seconds of ended processes that no other one of the group had as those of its children. */
  #unclaimed = 0;

  /**
   * Returns the seconds since the last call. Each process counts by itself. Otherwise one that ends
   * would hide as much of the others as it had used: a chain of programs that start each other and
   * end would use nothing.
   */
  add(group: readonly Times[]): number {
    const known = this.#known;
    this.#known = new Map(group.map((times) => [times.pid, times]));
    let spent = 0;
    let inherited = 0;
    for (const { pid, cpu, childCpu } of group) {
      const before = known.get(pid);
      spent += Math.max(0, cpu - (before?.cpu ?? 0));
      inherited += Math.max(0, childCpu - (before?.childCpu ?? 0));
    }
    let ended = 0;
    for (const { pid, cpu, childCpu } of known.values()) if (!this.#known.has(pid)) ended += cpu + childCpu;
    // The time of an ended process becomes a part of its parent's, and has been counted. The parent
    // may have been read before.
    const counted = ended + this.#unclaimed;
    this.#unclaimed = Math.max(0, ended - inherited);
    return spent + Math.max(0, inherited - counted);
  }
}
