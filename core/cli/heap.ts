/**
 * What V8 is asked for where a process serves. Its heap grows to twice what is alive, and not to four times that where a machine has
 * gigabytes to spare: a quarter less memory at the peak, for some per cent of CPU. Its young generation ends at 32 MiB: V8's own
 * bound is twice or four times as much, and no quicker. And what calls make is new: V8 would make it old from the start once many calls at
 * the same time have used theirs for long, and such an object, dead or not, holds all of its call until the whole heap is
 * collected, which can double what a small call costs.
 */
import { flushCompileCache } from "node:module";
import { PerformanceObserver } from "node:perf_hooks";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";

/** Of V8; programs that run parts of a server by themselves can be given them at their start. */
export const heapFlags: readonly string[] = ["--heap-growing-percent=100", "--no-allocation-site-pretenuring"];
/** V8 takes compiled code only from where the same flags were set: by then that of the start is kept (`tools/program.mjs`). */
const LATE_MS = 6000;
/** Bytes of the young generation from which on it does not grow. */
const MAX_YOUNG_BYTES = 32 * 1024 * 1024;

/** Gives what ends it, as far as it has not begun. */
export function tuneHeap(): () => void {
  const timer = setTimeout(() => {
    flushCompileCache();
    for (const flag of heapFlags) setFlagsFromString(flag);
    boundYoungGeneration();
  }, LATE_MS).unref();
  return () => clearTimeout(timer);
}

/** V8 takes a bound only when it starts, but asks after each collection by which factor to grow. */
function boundYoungGeneration(): void {
  let factor = 2;
  const bound = () => {
    const bytes = getHeapSpaceStatistics().find(({ space_name: name }) => name === "new_space")?.space_size ?? 0;
    const wanted = bytes < MAX_YOUNG_BYTES ? 2 : 1;
    if (wanted !== factor) setFlagsFromString(`--semi-space-growth-factor=${wanted}`);
    factor = wanted;
  };
  new PerformanceObserver(bound).observe({ entryTypes: ["gc"] });
}
